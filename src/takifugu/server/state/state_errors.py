"""What cannot be stored in the state of a server, or contradicts it."""

from takifugu.errors import Malformed, TakifuguError


class StateConflict(TakifuguError):
    """What is asked contradicts what is stored: ``reason`` says how.

    Its reasons: ``unknown`` (there is none of that number or name), ``decided`` (somebody has
    decided already), ``key`` (the key was used for another request), ``same person`` (who asks
    cannot decide), ``another person`` (only who asked can withdraw), ``many`` (too many wait),
    ``no token`` (who asked has no token that works).
    """


class InvalidToken(Malformed):
    """A token cannot be made: its name, its role or its end.

    Its reasons: ``name``, ``spelling`` (of a name that has a token), ``role``, ``two roles`` (the
    name has a token of another role), ``expires``.
    """


class InvalidApproval(Malformed):
    """A request for approval, or a decision, that cannot be stored."""


class InvalidResult(Malformed):
    """A result that cannot be kept."""
