"""A project: the policy file, its datasets, priors, budgets, held-out rows, cached translations."""

from typing import TYPE_CHECKING

from takifugu._core.lazy import lazy_names

if TYPE_CHECKING:
    from takifugu.project.project import Project as Project
    from takifugu.project.project import init_project as init_project
    from takifugu.project.project import open_project as open_project
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
