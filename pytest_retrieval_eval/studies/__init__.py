"""Answers to questions that are no gates: which stage of a pipeline loses documents, which of several configurations is
better, what a judged pool is worth, whether a judge may be believed, what labels foretell of a reader's answers.
"""
