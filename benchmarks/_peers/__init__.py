"""One module for each library, run in an environment of its own; what they share needs no package.

Every one answers the same query at the same loss for each entry: a row whose label is changed costs
ε. Where a library protects a row that is added or removed, a changed row is two of these, so that
it is given ε/2 for one, or two rows for ε. All then add noise of scale 2/ε to every count.
"""
