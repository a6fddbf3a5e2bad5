"""Readers whose model runs on this machine: loaded, given batches of prompts, and told apart by their weights."""
