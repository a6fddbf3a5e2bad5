"""Regression tests for retrieval."""
