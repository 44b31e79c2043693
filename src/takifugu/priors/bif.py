"""Bayesian networks from BIF files (Bayesian Network Interchange Format 0.15), and back.

Read are ``network``, ``variable`` with ``type discrete``, and ``probability`` with ``table``
(entries without parents), one row for each state of the parents, and ``default``. ``property``
lines and comments are skipped. A ``table`` for an entry that has parents is refused: programs
disagree about its order.
"""

import re
from itertools import product
from math import fsum, isfinite, nan
from pathlib import Path
from typing import Never

import numpy as np

from takifugu._core.atomic import read_unpacked
from takifugu._core.numeric import LEAST, SUMS_TO_ONE
from takifugu.errors import InvalidFile, InvalidPrior
from takifugu.priors.networks import BayesianNetwork

_TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/)|"(?P<quoted>[^"\n]*)"|(?P<mark>[{}()\[\],;|])"""
    r"""|(?P<word>[^\s{}()\[\],;|"]+)""",
    re.DOTALL,
)


def read_bif(path: str | Path, *, renormalise: bool = True) -> BayesianNetwork:
    """The network of a ``.bif`` or ``.bif.gz`` file.

    Files print few digits: a row of three thirds reads 0.333 0.333 0.333. A row that does not sum
    to 1 within 5e-10 is divided by its sum if the digits left out in print can explain it (half a
    unit in the last digit of each number), and the network says how many rows that were
    (``rescaled_rows``; ``takifugu prior show`` prints it). A row that is further off is refused.
    With ``renormalise=False`` every row that does not sum to 1 within 5e-10 is.
    """
    place = Path(path)
    try:
        text = read_unpacked(place, field=place.name, needed=_BIF).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidFile(place.name, given="is not text", needed=_BIF) from error
    return parse_bif(text, source=place.name, renormalise=renormalise)


_BIF = "be a readable BIF file, plain or gzipped"


def parse_bif(text: str, *, source: str = "bif", renormalise: bool = True) -> BayesianNetwork:
    """The network that ``text`` describes; ``source`` is what error messages call it."""
    return _Parser(text, source, renormalise).network()


def to_bif(network: BayesianNetwork) -> str:
    """The network as BIF text; reading it gives the same network back."""
    lines = [f"network {_word(network.name)} {{", "}"]
    for entry, states in zip(network.entries, network.states, strict=True):
        values = ", ".join(_word(state) for state in states)
        lines += [
            f"variable {_word(entry)} {{",
            f"  type discrete [ {len(states)} ] {{ {values} }};",
            "}",
        ]
    domain = dict(zip(network.entries, network.states, strict=True))
    for entry, above, table in zip(network.entries, network.parents, network.tables, strict=True):
        given = " | " + ", ".join(_word(p) for p in above) if above else ""
        lines.append(f"probability ( {_word(entry)}{given} ) {{")
        for at in np.ndindex(table.shape[:-1]):
            row = ", ".join(repr(float(value)) for value in table[at])
            where = ", ".join(_word(domain[p][k]) for p, k in zip(above, at, strict=True))
            lines.append(f"  ({where}) {row};" if above else f"  table {row};")
        lines.append("}")
    return "\n".join(lines) + "\n"


def _word(name: str | int) -> str:
    """A name as one token, in quotes if it needs them."""
    text = str(name)
    if '"' in text or "\n" in text or text != text.strip():
        raise InvalidPrior(
            "name", given=f"{text!r} cannot be written as BIF", needed="have no quote or line end"
        )
    plain = re.fullmatch(r"[^\s{}()\[\],;|\"/]+", text)
    return text if plain else f'"{text}"'


class _Parser:
    """One pass over the tokens; every error names its line."""

    def __init__(self, text: str, source: str, renormalise: bool) -> None:
        self.text, self.source, self.renormalise = text, source, renormalise
        self.tokens: list[str] = []
        self.starts: list[int] = []
        self.quoted: set[int] = set()
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                self.starts.append(at)
                self._fail(
                    len(self.starts) - 1,
                    "has an opening quotation mark only",
                    "close it on its line",
                    "quote",
                )
            if match.lastgroup != "skip":
                if match.lastgroup == "quoted":
                    self.quoted.add(len(self.tokens))
                self.tokens.append(match[match.lastgroup or 0])
                self.starts.append(at)
            at = match.end()
        self.starts.append(len(text))
        self.at = 0
        self.name = "unknown"
        self.states: dict[str, tuple[str, ...]] = {}
        self.parents: dict[str, tuple[str, ...]] = {}
        self.tables: dict[str, np.ndarray] = {}
        self.rescaled = 0

    def network(self) -> BayesianNetwork:
        """Read everything, then check that it fits together."""
        while self.at < len(self.tokens):
            match self._take("a block"):
                case "network":
                    self.name = self._name("the name of the network")
                    self._expect("{")
                    while not self._next_is("}"):
                        self._property()
                case "variable":
                    self._variable()
                case "probability":
                    self._probability()
                case _:
                    self._fail(
                        self.at - 1,
                        "starts an unknown block",
                        "be network, variable, probability",
                        "block",
                    )
        for entry in self.states:
            if entry not in self.tables:
                self._fail(
                    len(self.tokens), f"is the end, without a law of {entry!r}", "give one", "law"
                )
        if not self.states:
            self._fail(len(self.tokens), "is the end, and no variable was named", "name one")
        return BayesianNetwork(
            tuple(self.states),
            tuple(self.states.values()),
            tuple(self.parents[entry] for entry in self.states),
            tuple(self.tables[entry] for entry in self.states),
            self.name,
            self.rescaled,
        )

    def _variable(self) -> None:
        entry = self._name("the name of a variable")
        if entry in self.states:
            self._fail(
                self.at - 1, f"names {entry!r} a second time", "name each variable once", "twice"
            )
        self._expect("{")
        values: list[str] = []
        while not self._next_is("}"):
            if not self._accepts("type"):
                self._property()
                continue
            self._expect("discrete")
            self._expect("[")
            count, where = self._take("how many values"), self.at - 1
            self._expect("]")
            self._expect("{")
            values = self._names("}")
            self._expect(";")
            if count != str(len(values)) or not values or len(set(values)) != len(values):
                self._fail(
                    where, f"says {count} values of {entry!r}", "list as many, each once", "values"
                )
        if not values:
            self._fail(self.at - 1, f"ends {entry!r} without a type", "say `type discrete`")
        self.states[entry] = tuple(values)

    def _probability(self) -> None:
        self._expect("(")
        start = self.at
        entry = self._known()
        if entry in self.tables:
            self._fail(start, f"gives the law of {entry!r} a second time", "give each once")
        above: list[str] = []
        if self._accepts("|"):
            above.append(self._known())
            while self._accepts(","):
                above.append(self._known())
        self._expect(")")
        if entry in above or len(set(above)) != len(above):
            self._fail(
                start, f"lets {entry!r} depend on itself or twice on one", "not do so", "parents"
            )
        self._expect("{")
        size = len(self.states[entry])
        rows: dict[tuple[str, ...], list[float]] = {}
        default: list[float] | None = None
        while not self._next_is("}"):
            where = self.at
            if self._accepts("table"):
                if above:
                    self._fail(where, f"is a table, but {entry!r} has parents", _ROWS, "table")
                key: tuple[str, ...] = ()
            elif self._accepts("default"):
                default = self._row(size)
                continue
            elif above and self._accepts("("):
                key = tuple(self._names(")"))
                fits = len(key) == len(above) and all(
                    value in self.states[p] for p, value in zip(above, key, strict=False)
                )
                if not fits:
                    self._fail(
                        where, f"names no state of the parents of {entry!r}", "name one", "state"
                    )
            else:
                self._property()
                continue
            if key in rows:
                self._fail(where, f"gives a row of {entry!r} a second time", "give each row once")
            rows[key] = self._row(size)
        table = np.empty((*(len(self.states[p]) for p in above), size))
        for at, key in zip(
            np.ndindex(table.shape[:-1]), product(*(self.states[p] for p in above)), strict=True
        ):
            row = rows.get(key, default)
            if row is None:
                missing = f" for ({', '.join(key)})" if key else ""
                self._fail(
                    self.at - 1, f"ends {entry!r} without a row{missing}", "give each row", "row"
                )
            table[at] = row
        self.parents[entry] = tuple(above)
        self.tables[entry] = table

    def _row(self, size: int) -> list[float]:
        """Numbers up to the next semicolon: a distribution, with the printed precision."""
        start = self.at
        printed = self._names(";")
        row: list[float] = []
        for word in printed:
            value = float(word) if _NUMBER.fullmatch(word) else nan
            lost = value == 0 and any(digit in "123456789" for digit in _mantissa(word))
            if lost or not (isfinite(value) and (value == 0 or LEAST <= value <= 1 + SUMS_TO_ONE)):
                self._fail(
                    start, f"holds {word!r}", f"hold 0 or numbers from {LEAST:.3g} to 1", "number"
                )
            row.append(value)
        if len(row) != size:
            self._fail(
                start, f"holds {len(row)} numbers", f"hold {size}, one for each value", "count"
            )
        total = fsum(row)
        if abs(total - 1) > SUMS_TO_ONE / 2:
            doubt = sum(_half_digit(word) for word in printed)
            within = abs(total - 1) <= doubt
            if not (self.renormalise and within and total > 0):
                needed = "sum to 1"
                if not within:
                    needed += f", or be off by at most {doubt:.3g}, what rounding in print explains"
                elif total > 0:
                    needed += " (or be read with renormalise=True)"
                self._fail(start, f"sums to {total:.12g}", needed, "sum")
            self.rescaled += 1
            row = [value / total for value in row]
        return row

    def _names(self, end: str) -> list[str]:
        """Words separated by commas, up to ``end``."""
        try:
            stop = self.tokens.index(end, self.at)
        except ValueError:
            self._fail(self.at, "starts a list", f"end it with {end!r}")
        while stop in self.quoted:
            self._fail(stop, f"quotes {end!r}", "not use a mark as a name")
        words = self.tokens[self.at : stop]
        names, commas = words[0::2], words[1::2]
        wrong = any(comma != "," for comma in commas) or len(names) == len(commas)
        if (words and wrong) or any(name in _MARKS for name in names):
            self._fail(
                self.at, "starts a list", f"separate it by commas and end it with {end!r}", "list"
            )
        self.at = stop + 1
        return names

    def _property(self) -> None:
        """Skip ``property … ;``; anything else here is an error."""
        if not self._accepts("property"):
            given = self.tokens[self.at] if self.at < len(self.tokens) else "the end"
            self._fail(self.at, f"says {given!r}", "hold what a BIF block holds, and end in '}'")
        while self._take("';'") != ";":
            pass

    def _known(self) -> str:
        entry = self._name("a variable")
        if entry not in self.states:
            self._fail(
                self.at - 1, f"names {entry!r}", "name variables that stand above it", "variable"
            )
        return entry

    def _name(self, what: str) -> str:
        word = self._take(what)
        if word in _MARKS and self.at - 1 not in self.quoted:
            self._fail(self.at - 1, f"says {word!r}", f"give {what}")
        return word

    def _take(self, what: str) -> str:
        if self.at >= len(self.tokens):
            self._fail(self.at, "is the end", f"go on with {what}")
        self.at += 1
        return self.tokens[self.at - 1]

    def _expect(self, mark: str) -> None:
        if self._take(repr(mark)) != mark:
            self._fail(self.at - 1, f"says {self.tokens[self.at - 1]!r}", f"say {mark!r}")

    def _next_is(self, mark: str) -> bool:
        if self.at >= len(self.tokens):
            self._fail(self.at, "is the end", f"close a block with {mark!r}")
        return self._accepts(mark)

    def _accepts(self, word: str) -> bool:
        """Whether ``word`` comes next, without quotes; it is read then."""
        comes = self.tokens[self.at : self.at + 1] == [word] and self.at not in self.quoted
        self.at += comes
        return comes

    def _fail(self, token: int, given: str, needed: str, reason: str = "") -> Never:
        line = self.text.count("\n", 0, self.starts[min(token, len(self.starts) - 1)]) + 1
        raise InvalidFile(f"{self.source}, line {line}", given=given, needed=needed, reason=reason)


_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,9})?")
_MARKS = frozenset("{}()[],;|")
_ROWS = "be one row for each state of the parents; programs disagree about the order of a table"


def _mantissa(printed: str) -> str:
    return printed.lower().partition("e")[0]


def _half_digit(printed: str) -> float:
    """Half a unit of the last digit printed: how far off a rounded number can be."""
    mantissa, _, exponent = printed.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return 0.5 * 10.0 ** (int(exponent or 0) - decimals)
