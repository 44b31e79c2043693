"""Influence curves of Markov chains: exact, in groups of values, within intervals."""
