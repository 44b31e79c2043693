"""What the paper compares with, and its Algorithms 1 and 2; for comparison, never by default."""
