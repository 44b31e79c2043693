"""What a loss on rows means where a prior relates their columns, or several people."""
