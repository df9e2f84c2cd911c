"""Foreign transcripts: what a tool's own log says, as entries that a ledger can take (design 7.17 and 8)."""
