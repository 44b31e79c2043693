"""Everything takifugu raises on purpose.

* TakifuguError
  * Malformed             something was given in a form that has no meaning
    x InvalidPrior        a belief is not a distribution, or a secret cannot be asked of it
    x InvalidMechanism    a mechanism is not a table of probabilities, or does not fit its world
    x InvalidWorld        datasets, priors and secrets do not fit together
    x InvalidFile         a file cannot be read, or does not say what it must
  x UnsoundRequest        the number asked for is one that no proof supports
  x TooLarge              the exact answer is out of reach at this size; nothing was approximated

Messages say what was given, what is needed and what to do next. They may name parameters,
columns and budgets. They never contain a value read from a protected table.
"""


class TakifuguError(Exception):
    """Base of every deliberate error; anything else that escapes is a bug."""


class Malformed(TakifuguError, ValueError):
    """Something given cannot be understood: which field, what it is, what it must be."""

    def __init__(self, field: str, *, given: str, needed: str) -> None:
        super().__init__(f"`{field}` {given}; it must {needed}")
        self.field, self.given, self.needed = field, given, needed


class InvalidPrior(Malformed):
    """A prior was constructed from parameters that are not a distribution."""


class InvalidMechanism(Malformed):
    """A mechanism was given as something other than one distribution of outputs per dataset."""


class InvalidWorld(Malformed):
    """Datasets, priors, secrets and mechanisms of a finite world contradict one another."""


class InvalidFile(Malformed):
    """A file is missing, unreadable or not in the documented format."""


class UnsoundRequest(TakifuguError, ValueError):
    """A number was asked for that no proof supports."""


class TooLarge(TakifuguError):
    """An exact answer would take more than the stated room; a smaller question is suggested."""
