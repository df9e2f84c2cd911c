"""Use cases of presentations: showing a card, reading cards back, what a user thinks of one and chooses on it."""
