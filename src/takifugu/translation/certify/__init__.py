"""What must be believed: the only code of a translation that rounds.

Bounds are searched for by any means, in plain floats. Here what was found is checked, and no
proof, witness or claim is trusted, whatever its shape and its numbers: upper bounds are rounded up,
lower bounds down, and what proves nothing is infinite, or 0.

Believed is the *problem*, as a model states it from a prior and its costs: laws, rows and kernels
(those of `flow.RepeatedStep` are a function of the costs), costs, secret pairs, how many entries
there are and which may be known, and every ``slack``, which says how far rounding may have moved
the rows or the law; `laws` has them. `terminals.TerminalSide` refuses to be ``stochastic`` or
``steady`` where its kernel and law are not.

Whether a claim holds is decided here too. `flow.RepeatedStep.proves` answers a search, which takes
as a bound what was proven and nothing else; T_x of the value, which it is given, is that of
`flow.RepeatedStep.upper`.
"""
