"""Readers: language models that answer a query from documents, and the cache of what they answered.

Nothing is imported here: a reader costs what it needs, once it is asked for.
"""
