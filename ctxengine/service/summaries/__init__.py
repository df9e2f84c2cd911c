"""Summaries that a model writes: which model, what it is told, and how what it says comes to stand in a session."""
