"""The words of reports are those of the glossary of the site."""

import re
from pathlib import Path

from takifugu.reports.report_sentences import GLOSSARY

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "glossary.md"


def test_the_site_says_the_same_of_every_word() -> None:
    """Sentence by sentence: the site may say more, and has links."""
    text = PAGE.read_text(encoding="utf-8")
    site = {}
    for part in text.split("\n\n"):
        if found := re.match(r"\*\*(.+?)\*\*: (.*)", part, re.DOTALL):
            plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", found[2]).replace("`", "")
            site[found[1]] = " ".join(plain.split())
    for word, meaning in GLOSSARY.items():
        assert word in site, word
        for sentence in re.split(r"(?<=\.) (?=[A-Z0-9])", meaning):
            assert sentence in site[word], word
