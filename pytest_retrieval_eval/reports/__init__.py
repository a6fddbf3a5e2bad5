"""Reports: what a verdict looks like. They add no numbers of their own."""
