"""Declarations: their parts, their files, and the table that a program declares."""
