"""What a model can use, measured: profiles, the probe's ladder, and what receipts teach (capacity spec 1)."""
