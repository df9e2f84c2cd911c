"""Trust levels, envelopes around what is not trusted, and the framing that explains them."""
