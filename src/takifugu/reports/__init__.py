"""Figures and pages made from values. Nothing is computed here."""

from takifugu.reports.plot_files import SUFFIXES, check_target, save

__all__ = ["SUFFIXES", "check_target", "save"]
