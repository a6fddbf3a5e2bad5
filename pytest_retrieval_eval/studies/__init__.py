"""Answers to questions that are no gates: reports on a judged pool, and whether a judge may be believed."""
