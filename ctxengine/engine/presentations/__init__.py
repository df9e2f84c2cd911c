"""Presentations: cards as ledger entries, with schemas that say what a card is known by (capacity spec 10)."""
