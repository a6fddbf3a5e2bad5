"""The files of a folder of judgments: rows, columns of many rows, and the journal of what has just been judged."""
