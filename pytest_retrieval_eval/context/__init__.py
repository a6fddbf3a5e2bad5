"""Which dataset, run, baseline and reader the gates of a test mean: its marker, its fixtures and their precedence."""
