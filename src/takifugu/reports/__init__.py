"""Figures made from values. Nothing is computed here."""

from takifugu.reports.figure_files import SUFFIXES, check_target, collapse_figure, save

__all__ = ["SUFFIXES", "check_target", "collapse_figure", "save"]
