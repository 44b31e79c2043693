"""The paper's label map: 78 common labels, each raw label in one of them."""

import pytest

from takifugu.errors import InvalidFile
from takifugu.priors.labels import LabelMap, foursquare_labels


def test_the_map_has_the_labels_of_the_paper() -> None:
    labels = foursquare_labels()
    assert len(labels.labels) == 78
    raws = [raw for members in labels.members.values() for raw in members]
    assert len(raws) == len(set(raws)) == 428
    assert all(labels.common(raw) == label for label, m in labels.members.items() for raw in m)


@pytest.mark.parametrize(
    ("raw", "common"),
    [
        ("Café", "Cafe"),
        ("Ramen /  Noodle House", "Restaurant"),
        ("cocktail bar", "Bar"),
        ("Moon Base", "Other"),
    ],
)
def test_spelling_does_not_matter(raw: str, common: str) -> None:
    assert foursquare_labels().common(raw) == common
    assert foursquare_labels().merge([raw, raw]) == [common, common]


@pytest.mark.parametrize("document", [[], {"a": "b"}, {"a": [1]}])
def test_a_map_that_is_none_is_refused(document: object) -> None:
    with pytest.raises(InvalidFile):
        LabelMap.from_document(document)
