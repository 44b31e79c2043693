"""What many releases cost together: totals, composition, allowances, cached tables."""
