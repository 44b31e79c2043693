"""Searches for proofs and witnesses, in plain floats."""
