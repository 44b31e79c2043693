"""Translations of Bayesian networks and random fields: junction trees, attractive fields."""
