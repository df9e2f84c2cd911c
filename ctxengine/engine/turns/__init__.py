"""Closed turns: what they were, their cards, and which of them a new directive is about (capacity spec 2, 4 and 10)."""
