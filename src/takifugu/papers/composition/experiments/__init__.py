"""The experiments of Tables 1 and 2: mechanisms, metrics, cells and what they say of the claims."""
