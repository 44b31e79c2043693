"""A project: the policy file, its datasets, priors, budgets, held-out rows, cached translations."""

from typing import TYPE_CHECKING

from takifugu._core.lazy import lazy_names

if TYPE_CHECKING:
    from takifugu.project.project import Project, init_project, open_project
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "project": ("Project", "init_project", "open_project"),
        },
    )

__all__ = ["Project", "init_project", "open_project"]
