"""Measures: names, the ranks and grades of each query's judged documents, and the values computed from
them.
"""
