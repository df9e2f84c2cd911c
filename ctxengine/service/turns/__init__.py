"""What becomes of turns that are over: their cards, their index, and what is read of them (capacity spec 2, 3 and 10)."""
