"""Gaussian processes: what costs on real numbers, and linear queries, tell about one entry."""
