"""One module for each command; each imports what it needs when it is called."""
