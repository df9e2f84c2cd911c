"""Provider APIs: one renderer each, with the rules its requests obey (design 5, 6)."""
