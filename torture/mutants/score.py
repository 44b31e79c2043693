"""How many mutants were killed, and what that says about all of them."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from torture.mutants.trial import Verdict


def wilson(hits: int, tries: int, z: float = 1.959963984540054) -> tuple[float, float]:
    """Wilson's interval for a probability, from how often it happened."""
    if tries == 0:
        return 0.0, 1.0
    rate = hits / tries
    middle = rate + z * z / (2 * tries)
    spread = z * math.sqrt(rate * (1 - rate) / tries + z * z / (4 * tries * tries))
    scale = 1 + z * z / tries
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)


@dataclass(frozen=True)
class Score:
    """Of the mutants that were tried.

    Attributes:
        tried: How many.
        kinds: What became of them.
        listed: How many that lived are listed with a reason.
    """

    tried: int
    kinds: Mapping[str, int]
    listed: int

    @classmethod
    def of(cls, verdicts: Iterable[Verdict], reasons: Mapping[str, str]) -> "Score":
        """Count verdicts."""
        known = list(verdicts)
        lived = sum(1 for one in known if not one.killed and one.mutant.id in reasons)
        return cls(len(known), Counter(one.kind for one in known), lived)

    @property
    def killed(self) -> int:
        """How many a test noticed."""
        return sum(self.kinds.get(kind, 0) for kind in ("failed", "import", "crash", "timeout"))

    @property
    def raw(self) -> float:
        """Killed out of all."""
        return self.killed / self.tried if self.tried else 0.0

    @property
    def counting(self) -> int:
        """All but those listed."""
        return self.tried - self.listed

    @property
    def score(self) -> float:
        """Killed out of all but those listed."""
        return self.killed / self.counting if self.counting else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Where the score of all mutants is, with 95 % confidence."""
        return wilson(self.killed, self.counting)

    def line(self) -> str:
        """In one line."""
        low, high = self.interval
        return (
            f"tried {self.tried}, killed {self.killed} ({dict(self.kinds)}), listed {self.listed}, "
            f"raw {self.raw:.1%}, score {self.score:.1%} ({low:.1%} to {high:.1%})"
        )
