"""The boundary engine: checkpoints made by a provider or by a note, strict about every failure (boundary spec)."""
