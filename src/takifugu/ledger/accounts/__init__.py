"""What every entry has lost, by dataset and analyst, and what a budget admits."""
