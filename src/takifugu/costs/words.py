"""A cost in words, for people: which change of value tells how much."""

from takifugu.costs.cost import Cost
from takifugu.costs.shapes import (
    AnyValue,
    Column,
    Distance,
    Jointly,
    Matrix,
    Membership,
    Shape,
    Steps,
)
from takifugu.visible import four_digits

MOST_LABELS = 6  # of a set that are named
MOST_TERMS = 4  # of a cost that are named


def shape_words(shape: Shape) -> str:
    """What a release of this shape counts or measures.

    >>> shape_words(Steps(40, 240, "0.5"))
    'distance from 40 to 240 in steps of 0.5'
    >>> shape_words(Membership({"work", "home"})), shape_words(Column("age", Distance(0, 120)))
    ('count of home, work', 'distance from 0 to 120 in column age')
    """
    match shape:
        case AnyValue():
            return "any value"
        case Membership():
            names = sorted(map(str, shape.labels))
            more = len(names) - MOST_LABELS
            rest = f" and {more} more" if more > 0 else ""
            return f"count of {', '.join(names[:MOST_LABELS])}{rest}"
        case Distance(low=low, high=high):
            return f"distance from {four_digits(low)} to {four_digits(high)}"
        case Steps(low=low, high=high, step=step):
            bounds = f"{four_digits(low)} to {four_digits(high)}"
            return f"distance from {bounds} in steps of {four_digits(step)}"
        case Matrix():
            return f"matrix of {len(shape.values)} values"
        case Column(column=column, shape=inner):
            return f"{shape_words(inner)} in column {column}"
        case Jointly(columns=columns):
            return f"any value of columns {', '.join(columns)} together"


def cost_words(cost: Cost) -> str:
    """The coefficient of each shape, rounded up; the largest few of many.

    >>> cost_words(Cost.of({Membership({"home"}): "1/3", AnyValue(): "0.1"}))
    '0.3334 by count of home, 0.1 by any value'
    """
    terms = sorted(cost.terms, key=lambda term: (-term[1], shape_words(term[0])))
    named = [f"{four_digits(v, 'up')} by {shape_words(shape)}" for shape, v in terms[:MOST_TERMS]]
    more = len(terms) - MOST_TERMS
    return ", ".join(named) + (f" and {more} more shapes" if more > 0 else "") or "nothing"
