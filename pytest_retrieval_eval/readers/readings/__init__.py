"""What readers have read, kept: looked up before a model is, checked, and carried between machines."""
