"""Reads pages back."""

from html.parser import HTMLParser

VOID = {"meta", "br", "hr", "img", "path", "use", "rect"}


class Reader(HTMLParser):
    """Reads a page back: its text, its elements, and whether all of them were closed."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.text: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()

    @property
    def said(self) -> str:
        """All text, blanks made one."""
        return " ".join("".join(self.text).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """An element ends: the one that began last."""
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element without content."""
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        """Text between elements."""
        self.text.append(data)
