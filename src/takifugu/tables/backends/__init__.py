"""One module for each database, and what they share: files, spilling, cached facts."""
