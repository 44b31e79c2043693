"""What a refusal of priors says: the facts that decide its words."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from takifugu.engines import Category
from takifugu.errors import TakifuguError
from takifugu.priors import (
    AR1,
    Gaussian,
    MarkovChain,
    Product,
    Secrets,
)
from takifugu.session import Entries
from takifugu.session.columns_read import refuse_missing_states, refuse_other_columns, refuse_values
from takifugu.session.households import _grouping, _refuse_sizes, _refuse_unlike
from takifugu.session.number_states import refuse_other_numbers
from takifugu.session.prior_checks import _refuse_values
from takifugu.session.prior_reading import _by_column, _of_one, protected_column, refuse_about
from takifugu.session.query.linear import declared_sums
from tests.raising import raises
from tests.session.plain_engine import ENGINE, WEIGHT
from tests.session.refused_worlds import (
    CHAIN,
    FREE,
    HOUSE,
    LETTERS,
    NETS,
    ONE,
    STATES,
    TABLE,
    read,
)
from tests.session.tables import CHAIN as JOINT
from tests.session.tables import NETWORK

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize(
    ("refused", "field", "reason", "text"),
    [
        (
            lambda: Entries("rows"),  # type: ignore[arg-type]
            "over",
            "",
            "over is 'rows'; it must be one of sequence, row, entities, household, entities × "
            "sequence",
        ),
        (
            lambda: Entries("sequence", positions="abc"),  # type: ignore[arg-type]
            "positions",
            "",
            "positions is not a list; list the entries of the prior in order",
        ),
        (
            lambda: Entries("sequence", positions=3),  # type: ignore[arg-type]
            "positions",
            "",
            "positions is not a list; list the entries of the prior in order",
        ),
        (
            lambda: Entries("row", positions=("a",)),
            "positions",
            "",
            'positions belong to over = "sequence" alone; leave them out',
        ),
        (
            lambda: Entries("row", household="zone"),
            "household",
            "",
            'household belongs to over = "household" alone; leave it out',
        ),
        (
            lambda: Entries("row", member="zone"),
            "member",
            "",
            'member belongs to over = "household" alone; leave it out',
        ),
        (
            lambda: Entries("household", household=3),  # type: ignore[arg-type]
            "household",
            "",
            "household is a int; name a public column",
        ),
        (
            lambda: Entries("household", household="zone", member=3),  # type: ignore[arg-type]
            "member",
            "",
            "member is a int; name a public column",
        ),
        (
            lambda: Entries("household"),
            "household",
            "missing",
            'over = "household" needs the public column that groups entities; give it as '
            "`household`",
        ),
        (
            lambda: read(CHAIN, {"other": "sequence"}),
            "over",
            "",
            "over names 'other'; the priors are 'prior'",
        ),
        (
            lambda: read(CHAIN, 3),
            "over",
            "",
            "over is a int; give one of sequence, row, entities, household, entities × sequence",
        ),
        (
            lambda: read(NETS),
            "prior",
            "over-missing",
            "prior is a bayesian-network over 'ann', 'bob', and it is not stated what these are; "
            'give over = "entities" if each is one `person` with one row, over = "sequence" if '
            'they are the positions in the rows of each `person`, over = "row" if they are the '
            'protected columns of a row, or over = "entities × sequence" if each is a position of'
            " one `person`",
        ),
        (
            lambda: read(NETS, where=" (in the policy)"),
            "prior",
            "over-missing",
            "prior is a bayesian-network over 'ann', 'bob', and it is not stated what these are; "
            'give over = "entities" if each is one `person` with one row, over = "sequence" if '
            'they are the positions in the rows of each `person`, over = "row" if they are the '
            'protected columns of a row, or over = "entities × sequence" if each is a position of'
            " one `person` (in the policy)",
        ),
        (
            lambda: read(JOINT),
            "prior",
            "over-missing",
            "prior is a markov-chain on joint states of 'place', 'health', and it is not stated "
            'what these are; give over = "sequence" if they are the protected columns of each '
            'row, or over = "household", with the public column that groups people, if they are '
            "the members of a household",
        ),
        (
            lambda: read(JOINT, where=" (in the policy)"),
            "prior",
            "over-missing",
            "prior is a markov-chain on joint states of 'place', 'health', and it is not stated "
            'what these are; give over = "sequence" if they are the protected columns of each '
            'row, or over = "household", with the public column that groups people, if they are '
            "the members of a household (in the policy)",
        ),
        (
            lambda: read(JOINT, "row"),
            "prior",
            "over",
            "prior is a markov-chain on joint states, whose entries follow one another, and over "
            '= \'row\' is given; give over = "sequence" or "household", without positions',
        ),
        (
            lambda: read(JOINT, Entries("sequence", positions=("a",))),
            "prior",
            "over",
            "prior is a markov-chain on joint states, whose entries follow one another, and "
            '`positions` is given; give over = "sequence" or "household", without positions',
        ),
        (
            lambda: read(CHAIN, "row"),
            "prior",
            "over",
            "prior is a markov-chain, whose entries follow one another; leave `over` out or give "
            '"sequence"',
        ),
        (
            lambda: read(CHAIN, HOUSE),
            "prior",
            "over",
            "prior is a markov-chain, whose entries follow one another; leave `over` out or give "
            '"sequence"; a household needs a chain whose `columns` name its members',
        ),
        (
            lambda: read(CHAIN, "entities"),
            "prior",
            "over",
            "prior is a markov-chain, whose entries follow one another; leave `over` out or give "
            '"sequence"',
        ),
        (
            lambda: read(Gaussian(AR1(0.5)), "entities"),
            "prior",
            "over",
            "prior is a gaussian-process whose kernel goes by lags, so that its entries follow "
            'one another; leave `over` out or give "sequence"',
        ),
        (
            lambda: read(Product({"Ann": CHAIN}), "sequence"),
            "prior",
            "over",
            'prior is a product, whose parts are entities; leave `over` out or give "entities"',
        ),
        (
            lambda: read(Product({"Ann": Product({"Bea": CHAIN})})),
            "prior, Ann",
            "nested-product",
            "prior, Ann is a product within a product; give each entity one prior",
        ),
        (
            lambda: read(Product({"Ann": JOINT})),
            "prior, Ann",
            "joint-part",
            "prior, Ann has joint states, and the parts of a product are about one column; give "
            "one chain on joint states for everybody",
        ),
        (
            lambda: read(Product({"Ann": NETS})),
            "prior, Ann",
            "no-positions",
            "prior, Ann has the entries 'ann', 'bob', which are no positions of a sequence: those"
            ' are called 0 to 1. Rename them, or list them in order: positions = ["ann", "bob"]',
        ),
        (
            lambda: read(NETS, HOUSE),
            "prior",
            "over",
            "prior is a bayesian-network; a household needs a markov-chain whose `columns` name "
            "its members",
        ),
        (
            lambda: read(NETS, "sequence"),
            "prior",
            "no-positions",
            "prior has the entries 'ann', 'bob', which are no positions of a sequence: those are "
            'called 0 to 1. Rename them, or list them in order: positions = ["ann", "bob"]',
        ),
        (
            lambda: read(
                replace(NETS, entries=LETTERS[:2], parents=((), ("n0",))),
                Entries("sequence", positions=("n0", "n2")),
            ),
            "prior",
            "positions-differ",
            "prior and its positions differ in names. Prior: 'n0', 'n1'; positions: 'n0', 'n2'; "
            "only in the prior: 'n1'; only in positions: 'n2'; list each entry once",
        ),
        (
            lambda: read(
                replace(NETS, entries=LETTERS[:2], parents=((), ("n0",))),
                Entries("sequence", positions=("n0", "n0", "n1")),
            ),
            "prior",
            "positions-differ",
            "prior and its positions differ in names. Prior: 'n0', 'n1'; positions: 'n0', 'n0', "
            "'n1'; list each entry once",
        ),
        (
            lambda: read({"a": JOINT, "b": CHAIN}, {"a": "sequence"}),
            "over",
            "mixed",
            "a is over the sequence of several columns, and b is over the sequence; the priors of"
            " a dataset must be about the same: make two datasets, or give both the same `over`",
        ),
        (
            lambda: read({"a": NETWORK, "b": FREE}, {"a": "row", "b": "entities"}),
            "over",
            "mixed",
            "a is over the row, and b is over entities; the priors of a dataset must be about the"
            " same: make two datasets, or give both the same `over`",
        ),
        (
            lambda: read({"a": NETWORK, "b": JOINT}, {"a": "row", "b": HOUSE}),
            "over",
            "mixed",
            "a is over the row, and b is over the household of zone; the priors of a dataset must"
            " be about the same: make two datasets, or give both the same `over`",
        ),
        (
            lambda: read({"a": NETWORK, "b": FREE}, {"a": "row", "b": "entities × sequence"}),
            "over",
            "mixed",
            "a is over the row, and b is over entities × sequence; the priors of a dataset must "
            "be about the same: make two datasets, or give both the same `over`",
        ),
        (
            lambda: refuse_other_columns("prior", NETWORK, TABLE),
            "prior",
            "columns-differ",
            "prior and the table differ in columns. Prior: 'place', 'health'; protected columns: "
            "'state', 'mood', 'weight'; only in the prior: 'place', 'health'; only in protected "
            "columns: 'state', 'mood', 'weight'. Every protected column must be in the prior, by "
            "its name, and no other",
        ),
        (
            lambda: refuse_other_columns(
                "prior", replace(NETWORK, entries=("zone", "mood"), parents=((), ("zone",))), TABLE
            ),
            "prior",
            "columns-differ",
            "prior and the table differ in columns. Prior: 'zone', 'mood'; protected columns: "
            "'state', 'mood', 'weight'; only in the prior: 'zone'; only in protected columns: "
            "'state', 'weight'. 'zone' is public: it is known to everybody, and belongs in no "
            "prior of what is protected. Every protected column must be in the prior, by its "
            "name, and no other",
        ),
        (
            lambda: refuse_values("prior", TABLE.protected[0], ("home", "ward")),
            "prior",
            "states-differ",
            "prior and the table differ in the labels of `state`. Prior: 'home', 'ward'; declared"
            " labels: 'home', 'ward', 'clinic'; only in declared labels: 'clinic'. The values of "
            "a column in a prior must be its labels, by the same names",
        ),
        (
            lambda: refuse_values("prior", Category("state", (1, 2), "refuse"), ("1", "2")),
            "prior",
            "types-differ",
            "prior and the table differ in the labels of `state`. Prior: '1', '2'; declared "
            "labels: 1, 2; only in the prior: '1', '2'; only in declared labels: 1, 2. They are "
            "whole numbers on one side and text, in quotes, on the other: write those of the prior "
            "as the table has them. The values of a column in a prior must be its labels, by the "
            "same names",
        ),
        (
            lambda: refuse_values("prior", Category("state", STATES, "drop"), STATES),
            "prior",
            "states-differ",
            "prior and the table differ in the labels of `state`. Prior: 'home', 'ward', "
            "'clinic'; declared labels: 'home', 'ward', 'clinic'. One more value must stand for "
            "what is left out, which is protected too. The values of a column in a prior must be "
            "its labels, by the same names",
        ),
        (
            lambda: refuse_missing_states(
                "prior",
                MarkovChain(
                    np.full((3, 3), 1 / 3),
                    states=(("a", "x"), ("a", "y"), ("b", "x")),
                    columns=("p", "q"),
                ),
            ),
            "prior",
            "joint-states",
            "prior has 3 joint states of 'p', 'q', and their labels make 4: ('b', 'y') is left "
            "out. A row with such values would be outside of the prior; list every combination, "
            "with probabilities of 0 where it never happens",
        ),
        (
            lambda: refuse_missing_states(
                "prior",
                MarkovChain(
                    np.full((3, 3), 1 / 3),
                    states=(("a", "x"), ("b", "y"), ("c", "z")),
                    columns=("p", "q"),
                ),
            ),
            "prior",
            "joint-states",
            "prior has 3 joint states of 'p', 'q', and their labels make 9: ('a', 'y'), ('a', "
            "'z'), ('b', 'x'), … is left out. A row with such values would be outside of the "
            "prior; list every combination, with probabilities of 0 where it never happens",
        ),
        (
            lambda: protected_column(TABLE, None),
            "about",
            "",
            "state, mood, weight are protected and a prior is about one of them; name it with "
            '`about`, or give a prior over all of them (over = "row", or a chain with `columns`)',
        ),
        (
            lambda: protected_column(TABLE, "zone"),
            "about",
            "",
            "about is 'zone'; it must be one of state, mood, weight",
        ),
        (
            lambda: refuse_about("state", TABLE),
            "about",
            "several-columns",
            "about is 'state', and the prior is over all protected columns (state, mood, weight);"
            " leave `about` out",
        ),
        (
            lambda: _of_one({"mood": Secrets()}, TABLE, "state"),
            "secrets",
            "other-column",
            "secrets are given for 'mood', and the prior is about 'state' alone",
        ),
        (
            lambda: _by_column(
                Secrets(pairs=((("home",), ("ward",)),)), NETWORK, TABLE, places=True
            ),
            "pairs",
            "by-column",
            "pairs are given for no column, and state, mood, weight are protected; give them by "
            "column: {column: pairs}",
        ),
        (
            lambda: _by_column({"zone": Secrets()}, NETWORK, TABLE, places=True),
            "secrets",
            "other-column",
            "secrets are given for 'zone'; the protected columns are 'state', 'mood', 'weight'",
        ),
        (
            lambda: _by_column(
                {"state": Secrets(within=1)},
                replace(NETWORK, entries=("state", "mood"), parents=((), ("state",))),
                ONE,
                places=True,
            ),
            "within",
            "",
            "secrets within a distance are for a gaussian prior, and `state` has values of a "
            "list; give pairs of them",
        ),
        (
            lambda: _by_column(
                {"state": Secrets(entries=(1,))},
                replace(NETWORK, entries=("state", "mood"), parents=((), ("state",))),
                ONE,
                places=False,
            ),
            "entries",
            "",
            'entries are given, and the entries of over = "row" are columns, whose secrets are '
            "all kept; leave them out",
        ),
        (
            lambda: _grouping("prior", "state", ENGINE),
            "household",
            "not-public",
            "household is 'state', which is not a public column; public columns: 'zone', 'floor'."
            " Who belongs together must be public",
        ),
        (
            lambda: _grouping("prior", "state", ENGINE, "member"),
            "member",
            "not-public",
            "member is 'state', which is not a public column; public columns: 'zone', 'floor'. "
            "Who belongs together must be public",
        ),
        (
            lambda: _refuse_sizes("prior", {2: 1000, 3: 1}, 2, "zone", "person"),
            "prior",
            "sizes-differ",
            "prior is about 2 people, and `zone` has households of other sizes: 1,000 of 2, 1 of "
            "3 person; keep those of 2 in a table of their own, with a prior and a dataset for "
            "each size",
        ),
        (
            lambda: _refuse_sizes("prior", {2: 1000, 1000: 1}, 2, "zone", "person"),
            "prior",
            "sizes-differ",
            "prior is about 2 people, and `zone` has households of other sizes: 1,000 of 2, 1 of "
            "1,000 person; keep those of 2 in a table of their own, with a prior and a dataset "
            "for each size up to 8; larger ones need a field over people and time (over = "
            '"entities × sequence")',
        ),
        (
            lambda: _refuse_unlike("prior", JOINT, "zone"),
            "member",
            "missing",
            "prior tells its members 'place', 'health' apart, and it is not stated who in a zone "
            "is which; name the public column that says so as `member`, or use a prior that is "
            "the same whatever order its members are put in",
        ),
        (
            lambda: refuse_other_numbers("prior", ("[0, 1)", "[1, 2]"), WEIGHT),
            "prior",
            "other-bounds",
            "prior is not about `weight`: its states are the ranges [0, 1), [1, 2]; they must cut"
            " the bounds of weight, [-1, 4], as [-1, 0), [0, 1), [1, 2), [2, 4]",
        ),
        (
            lambda: refuse_other_numbers("prior", ("0", "1"), WEIGHT),
            "prior",
            "no-numbers",
            "prior has 2 states for `weight`, a column of numbers, and they are neither its 11 "
            "numbers, by steps, nor ranges of them such as '[0, 0.5)', '[0.5, 1]'; name them so "
            "(`takifugu prior fit … --cuts` does)",
        ),
        (
            lambda: refuse_other_numbers("prior", (0, 1), WEIGHT),
            "prior",
            "no-numbers",
            "prior has 2 states for `weight`, a column of numbers, and they are neither its 11 "
            "numbers, by steps, nor ranges of them such as '[0, 0.5)', '[0.5, 1]'; name them so "
            "(`takifugu prior fit … --cuts` does)",
        ),
        (
            lambda: refuse_other_numbers(
                "prior", ("[-1, 2)", "[2, 4]"), replace(WEIGHT, missing="drop")
            ),
            "prior",
            "missing",
            "missing values of `weight` are left out, which is protected too, and prior has no "
            'state for them; declare missing = "refuse", or the number that a missing value '
            "counts as",
        ),
        (
            lambda: refuse_other_numbers(
                "prior", ("[-1, 2)", "[2, 4]"), replace(WEIGHT, missing="drop"), numbered=True
            ),
            "prior",
            "missing",
            "missing values of `weight` are left out, which is protected too, and prior has no "
            'state for them; declare missing = "refuse", or the number that a missing value '
            "counts as",
        ),
        (
            lambda: _refuse_values("prior", CHAIN, TABLE, "mood"),
            "prior",
            "states-differ",
            "prior has 3 states and `mood` has 2 labels, or they have other names. Prior: 'home', "
            "'ward', 'clinic'; labels: 'low', 'high'; only in the prior: 'home', 'ward', 'clinic'; "
            "only in labels: 'low', 'high'. The states of a prior must be the labels of its column",
        ),
        (
            lambda: _refuse_values("prior", Gaussian(AR1(0.5)), TABLE, "mood"),
            "prior",
            "numbers",
            "prior is about numbers, each of which is there; `mood` must be a column of numbers "
            'with missing = "refuse"',
        ),
        (
            lambda: _refuse_values(
                "prior",
                Gaussian(AR1(0.5)),
                replace(TABLE, protected=(replace(WEIGHT, missing=Fraction(0)),)),
                "weight",
            ),
            "prior",
            "numbers",
            "prior is about numbers, each of which is there; `weight` must be a column of numbers"
            ' with missing = "refuse"',
        ),
        (
            lambda: declared_sums({"x": 3}, TABLE, ("weight",)),  # type: ignore[dict-item]
            "linear, x",
            "",
            "`linear, x` is something else; it must be a `WeightedSum`",
        ),
    ],
)
def test_a_refusal_says_what_is_given_and_what_is_needed(
    refused: Callable[[], object], field: str, reason: str, text: str
) -> None:
    with raises(TakifuguError, field=field, reason=reason) as caught:
        refused()
    assert str(caught.value) == text
