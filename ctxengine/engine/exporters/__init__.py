"""Sessions written back in the formats of others: chat bodies and traces that any of their tools can read."""
