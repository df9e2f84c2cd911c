"""Schema migrations of the ledger."""
