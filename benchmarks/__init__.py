"""Ratios measured side by side in one run; nothing here fails on a clock."""
