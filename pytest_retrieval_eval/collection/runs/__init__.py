"""Runs: what a retriever returned, from a function, a file or a table; ranked lists, traces, stages of a pipeline."""
