"""Questions that a language model writes from passages: each with its passage as gold."""
