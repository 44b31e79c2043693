"""Tables, figures and pages, made from stored results."""
