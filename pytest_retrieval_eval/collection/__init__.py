"""The test collection: queries, judgments, runs, data sets, and their files."""
