"""Gold spans and chunks: which characters of which document, where they stand today, and what a chunk holds of them."""
