"""Readers behind an HTTP service: what is sent, how fast, at what cost, and what a reply means."""
