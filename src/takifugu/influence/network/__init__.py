"""Influence curves of Bayesian networks and random fields, by elimination and search."""
