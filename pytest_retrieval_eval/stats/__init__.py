"""Statistics: arrays in, numbers out. Imports numpy and the standard library only."""
