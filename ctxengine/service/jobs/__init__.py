"""Jobs: rows that say what is to be done, leases that say who does it, and a sweeper that forgets nothing (design 10)."""
