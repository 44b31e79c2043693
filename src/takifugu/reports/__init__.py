"""Figures and pages made from values. Nothing is computed here."""

from takifugu.reports.collapse_figure import collapse_figure
from takifugu.reports.figure_files import SUFFIXES, check_target, save

__all__ = ["SUFFIXES", "check_target", "collapse_figure", "save"]
