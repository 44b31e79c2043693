"""A project: the policy file, its datasets, priors, budgets, held-out rows, cached translations."""

from takifugu.project.project import Project, init_project, open_project

__all__ = ["Project", "init_project", "open_project"]
