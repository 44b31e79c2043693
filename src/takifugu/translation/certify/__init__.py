"""What must be believed: the only code of a translation that rounds.

Bounds are searched for by any means, in plain floats. Here what was found is checked, and nothing
that is given is trusted: upper bounds are rounded up, lower bounds down, and what proves nothing
is infinite, or 0.
"""
