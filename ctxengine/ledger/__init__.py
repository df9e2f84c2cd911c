"""The ledger: Postgres tables, append, chains, and the queries that read them (design 4)."""
