"""Priors as the problems that searches solve and `takifugu.translation.certify` checks."""
