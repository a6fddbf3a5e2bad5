"""Measures: names, the ranks and grades of judged documents, and the values computed from them."""
