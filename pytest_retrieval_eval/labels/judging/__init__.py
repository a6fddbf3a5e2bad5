"""Judges: language models, functions and votes that grade how relevant a document is to a query."""
