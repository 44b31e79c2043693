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


class Outline(Reader):
    """Reads a page back, with its headings, its lists, its links and the names of its figures."""

    def __init__(self, html: str) -> None:
        self.levels: list[int] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.figures: list[str] = []
        self.lists: dict[str, list[str]] = {}  # the items of numbered lists, by heading above
        self._heading, self._into = "", ""
        super().__init__(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        super().handle_starttag(tag, attrs)
        found = dict(attrs)
        if len(tag) == 2 and tag[0] == "h" and tag[1].isdigit():
            self.levels.append(int(tag[1]))
            self._heading, self._into = "", "heading"
        if found.get("id"):
            self.ids.append(str(found["id"]))
        self.links += [str(value) for name, value in attrs if name in ("href", "xlink:href")]
        if found.get("role") == "img":
            self.figures.append(str(found.get("aria-label")))
        if tag == "li" and "ol" in self.open and "main" in self.open:
            self.lists.setdefault(self._heading, []).append("")
            self._into = "item"

    def handle_endtag(self, tag: str) -> None:
        """An element ends."""
        super().handle_endtag(tag)
        if tag == "li" or (len(tag) == 2 and tag[0] == "h"):
            self._into = ""

    def handle_data(self, data: str) -> None:
        """Text between elements."""
        super().handle_data(data)
        if self._into == "heading":
            self._heading += data
        elif self._into == "item":
            self.lists[self._heading][-1] += data
