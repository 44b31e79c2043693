"""What a guarantee says, sentence by sentence: each fact that changes it is told."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from takifugu.binding.prior_reading import row_translation
from takifugu.declarations import Amount, Category, Declaration, Order, Source
from takifugu.priors import (
    AR1,
    BayesianNetwork,
    Gaussian,
    IndependentEntries,
    MarkovChain,
    Product,
    Secrets,
    TruncatedGaussian,
)
from takifugu.session import Entries
from takifugu.session.guarantee import described, guarantee
from takifugu.translation.translation import Translation
from tests.session.tables import CHAIN as JOINT
from tests.session.tables import NETWORK
from tests.session.world import CHAIN, STATES

ORDERED = Declaration(
    Source("csv", path="none.csv"),
    "person",
    Order("step", "number"),
    (Category("state", STATES, "refuse"),),
    (Category("zone", ("a", "b"), "refuse"),),
)
SEQUENCE = {"prior": Entries("sequence")}
OTHER = MarkovChain(np.array([[0.6, 0.4], [0.4, 0.6]]), states=STATES, length=4)
ONE = Translation(CHAIN)
TWO = Translation({"mild": CHAIN, "strict": OTHER})


def said(
    translation: Any,
    columns: tuple[str, ...] = ("state",),
    read: Any = SEQUENCE,
    declaration: Declaration = ORDERED,
    **how: Any,
) -> str:
    """The guarantee without the declaration's own, in one line."""
    given = {"epsilon": None, "delta": Fraction(0), "statement": ""} | how
    text = guarantee(declaration, translation, columns, read, **given)
    begin = f"{declaration.guarantee()}\n"
    assert text.startswith(begin) and text.endswith("\n")
    return " ".join(text[len(begin) :].split())


def test_a_chain_on_one_column() -> None:
    assert said(ONE) == (
        "The loss is about `state` alone, against a Markov chain of 4 entries."
        " The prior in numbers: 2 states; a value is followed by itself with probability 0.7 to"
        " 0.8, and the least probable step has the probability 0.2."
        " The rows of each `person`, in the order of `step`, are taken to be a draw from it, or the"
        " beginning of one, and to be independent of every other one's."
        " Every pair of values of `state` is kept secret, at every entry."
    )


def test_a_delta_and_a_budget_are_told_with_what_they_mean() -> None:
    beside = "Beside the loss ε there is a δ of at most"
    assert beside not in said(ONE) and "In numbers" not in said(ONE)
    text = said(ONE, delta=Fraction(1, 3), epsilon=Fraction(1))
    assert f"{beside} 0.3334: any set of outcomes is at most e^ε times" in text
    assert text.count("0.3334") == 2 and "has can become certain from all that" in text
    text = said(ONE, epsilon=Fraction(1, 3), statement="It was fitted on Mars.")
    assert (
        "In numbers, for one entry: someone with such a prior who thought 50 : 50 about which of"
        " two values an entry has can come to at most 58.3 : 41.7 from all that the budget of ε ="
        " 0.3334 admits. It was fitted on Mars."
    ) in text
    assert text.endswith("It was fitted on Mars.")


def test_lines_are_filled_up_to_a_hundred_letters() -> None:
    text = guarantee(
        ORDERED, ONE, ("state",), SEQUENCE, epsilon=None, delta=Fraction(0), statement=""
    )
    lines = text.splitlines()
    assert 90 < max(map(len, lines[-6:])) <= 100


def test_several_priors_are_named_and_told_apart_where_they_are_read_otherwise() -> None:
    read = {"mild": Entries("sequence"), "strict": Entries("sequence")}
    text = said(TWO, read=read)
    listed = "against mild (a Markov chain of 4 entries) and strict (a Markov chain of 4 entries)."
    assert listed in text and "are taken to be a draw from one of them, or the" in text
    assert text.count("are taken to be a draw") == 1
    read["strict"] = Entries("entities")
    text = said(TWO, read=read)
    assert "are taken to be a draw from mild, or the" in text
    assert "one draw from strict, whose entries are the entities of `person`, matched" in text
    unsure = said(Translation(CHAIN, uncertainty=0.125))
    assert "chain of 4 entries, each probability off by up to 0.125 of itself. The" in unsure


def test_each_reading_says_what_one_draw_is() -> None:
    product = said(Translation(Product({"Ann": CHAIN, "Bea": CHAIN})), read=SEQUENCE)
    assert "a draw from the part of it that has its name, or the beginning" in product
    for over, begins in (
        (
            "entities",
            "All rows together are taken to be one draw from it, whose entries are the en",
        ),
        (
            "row",
            "The columns of each row are taken to be one draw from it, whose entries are the p",
        ),
        (
            "entities × sequence",
            "All rows together are taken to be one draw from it, whose entries are the rows of each"
            " `person`, in the order of `step`, matched by name and position: they depend",
        ),
    ):
        assert begins in said(ONE, read={"prior": Entries(over)})  # type: ignore[arg-type]
    joint = row_translation("sequence", {"prior": JOINT}, {"place": Secrets()}, 0)
    table = replace(ORDERED, protected=(Category("place", ("home", "out"), "refuse"),))
    text = said(joint, ("place",), declaration=table)
    assert "with the values of all protected columns as one joint state each, are taken" in text
    assert "The loss is about `place` alone" in text
    assert text.endswith("Every pair of values of `place` is kept secret.")


def test_households_are_told_by_their_column_and_members() -> None:
    plain = Entries("household", household="zone")
    text = said(ONE, read={"prior": plain})
    assert (
        "The rows of all of `person` in one `zone`, in the order of `step`, are taken to be a draw"
        " of joint states from it, or the beginning of one, and to be independent of every other"
        " `zone`."
    ) in text
    named = Entries("household", household="zone", member="role")
    text = said(TWO, read={"mild": plain, "strict": named})
    assert "in one `zone`, told apart by `role`, in the order" in text
    assert text.count("are taken to be a draw of joint states from one of them") == 2


def test_a_table_without_an_order_has_one_row_each() -> None:
    absent = replace(ORDERED, order=Order.none())
    assert "The rows of each `person`, one each, are taken" in said(ONE, declaration=absent)


def test_secrets_are_listed_and_the_rest_is_not_guaranteed() -> None:
    end = ". Nothing is guaranteed for others."
    kept = Translation(CHAIN, Secrets(entries=(0, 2)))
    assert said(kept).endswith(f"Only these are kept secret: the entries 0, 2{end}")
    both = Translation(CHAIN, Secrets(entries=(1,), pairs=((("home",), ("ward",)),)))
    assert f"kept secret: the entries 1 and the pairs home against ward{end}" in said(both)


@pytest.mark.parametrize(
    ("prior", "text"),
    [
        (CHAIN, "a Markov chain of 4 entries"),
        (replace(CHAIN, length=None), "a Markov chain of unbounded length"),
        (TruncatedGaussian(np.eye(3), 8.0, 0.5), "a truncated Gaussian of 3 entries"),
        (Gaussian(AR1(0.5), 7), "a Gaussian process of 7 entries"),
        (NETWORK, "a Bayesian network 'survey' of 2 entries"),
        (
            BayesianNetwork(("x",), (("0", "1"),), ((),), (np.array((0.5, 0.5)),)),
            "a Bayesian network of 1 entries",
        ),
        (IndependentEntries({"x": {"0": 0.5, "1": 0.5}}), "independent entries of 1 entries"),
        (
            Product({"Ann": CHAIN, "Bea": replace(CHAIN, length=None), "Cid": CHAIN}),
            "3 independent people, each with a Markov chain of 4 entries or a Markov chain of"
            " unbounded length",
        ),
    ],
)
def test_a_prior_in_a_few_words(prior: Any, text: str) -> None:
    assert described(prior) == text


def test_what_an_adversary_knows_beyond_the_prior() -> None:
    first = (
        "adversary knows how one value follows another, and may hold any law for the first row that"
        " is read: also one that follows from earlier rows of the same `person`."
    )
    rest = "adversary may also know any other rows of the same `person` exactly"
    start, known = replace(CHAIN, start="unknown"), replace(CHAIN, known="any")
    read = {"mild": Entries("sequence"), "strict": Entries("sequence")}
    assert "adversary" not in said(ONE)
    assert f"The {first}" in said(Translation(start)) and f"The {rest}" in said(Translation(known))
    for strict, told in ((start, first), (known, rest)):
        both = Translation({"mild": CHAIN, "strict": strict})
        assert f"For some of them the {told}" in said(both, read=read)


def test_numbers_are_normal_or_stand_for_ranges() -> None:
    amount = Amount("load", Fraction(0), Fraction(2), Fraction(1), "refuse")
    table = replace(ORDERED, protected=(amount, Category("state", STATES, "refuse")))
    normal = "The numbers of `load` are taken to be jointly normal, as the prior states,"
    ranges = "The states of a prior stand for ranges of `load`; within them"
    text = said(Translation(Gaussian(AR1(0.5), 4), Secrets(within=1)), ("load",), declaration=table)
    assert normal in text and ranges not in text
    matrix = np.full((2, 2), 0.5)
    cut = MarkovChain(matrix, states=("[0, 1)", "[1, 2]"), length=4)
    text = said(Translation(cut), ("load",), declaration=table)
    assert ranges in text and normal not in text
    numbers = MarkovChain(np.full((3, 3), 1 / 3), states=("0", "1", "2"), length=4)
    assert ranges not in said(Translation(numbers), ("load",), declaration=table)
    assert ranges not in said(ONE, declaration=table)  # that column is not read
