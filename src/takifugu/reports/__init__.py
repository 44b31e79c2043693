"""Figures made from values. Nothing is computed here."""

from takifugu.reports.plots import SUFFIXES, check_target, save

__all__ = ["SUFFIXES", "check_target", "save"]
