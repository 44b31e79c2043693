"""Translations of Markov chains: finite, unbounded, of two states, within intervals."""
