"""Older copies: how they are recognised, made, put back and accepted."""
