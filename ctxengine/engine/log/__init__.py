"""The log's own rules, whatever stores it: heads, hash chain, units and their running sums (design 4)."""
