"""“Composition for Pufferfish Privacy” (Bai, He, Gu, Kifer, Maeng), reproduced."""
