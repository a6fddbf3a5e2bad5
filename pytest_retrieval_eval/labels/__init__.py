"""Everything that makes relevance labels: whatever they come from, they become a Qrels."""
