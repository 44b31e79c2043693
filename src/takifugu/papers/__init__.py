"""Reproductions, one folder for each paper."""
