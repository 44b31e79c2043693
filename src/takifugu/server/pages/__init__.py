"""The pages that people see in a browser."""
