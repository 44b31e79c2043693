"""``takifugu demo``: what a user does with a project, on synthetic check-ins."""
