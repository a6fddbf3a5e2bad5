"""What a command line may say: each command's words, its options, and where the function is that does it."""
