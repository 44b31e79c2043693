"""Composition for Pufferfish Privacy (Bai, He, Gu, Kifer and Maeng)."""
