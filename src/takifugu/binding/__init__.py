"""What the entries of a prior are in a table, by name."""
