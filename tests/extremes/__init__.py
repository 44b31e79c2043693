"""Priors at the edge of float64, against sums in high precision."""
