"""Events in a chain of hashes, and what the last of them put in force."""
