"""A mutant: one small change of one module, and an id that stays when other lines change."""

import ast
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Change:
    """Bytes of a source that another text replaces.

    Attributes:
        operator: What kind of change it is.
        start: First byte.
        end: After the last.
        text: What stands there instead.
        node: The part of the code it is about.
    """

    operator: str
    start: int
    end: int
    text: str
    node: ast.AST


@dataclass(frozen=True)
class Mutant:
    """One change of one module.

    Attributes:
        id: Module, function, operator, and a digest of the line and what it becomes.
        module: The file, relative to the package of all.
        line: Where it begins.
        lines: Every line of the statement it is in.
        function: The lines of the function it is in; none at the level of a module or class.
        operator: What kind of change it is.
        before: The text that is replaced.
        after: By what.
        start: First byte that is replaced.
        end: After the last.
    """

    id: str
    module: str
    line: int
    lines: tuple[int, ...]
    function: tuple[int, ...]
    operator: str
    before: str
    after: str
    start: int
    end: int

    def applied(self, source: bytes) -> bytes:
        """The source with the change."""
        return source[: self.start] + self.after.encode() + source[self.end :]

    def shown(self) -> str:
        """The change on one line."""
        before, after = (" ".join(text.split()) for text in (self.before, self.after))
        return f"{self.module}:{self.line} {self.operator}  {before}  →  {after}"


class Source:
    """The text of a module: bytes, lines, and where its functions are."""

    def __init__(self, path: Path, module: str) -> None:
        self.module = module
        self.bytes = path.read_bytes()
        self.lines = self.bytes.split(b"\n")
        self.tree = ast.parse(self.bytes)
        self._starts = [0]
        for line in self.lines:
            self._starts.append(self._starts[-1] + len(line) + 1)

    def start(self, node: ast.AST) -> int:
        """The first byte of a node."""
        return self._starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined, no-any-return]

    def end(self, node: ast.AST) -> int:
        """The byte after a node."""
        return self._starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined, no-any-return]

    def text(self, node: ast.AST) -> str:
        """A node as it is written."""
        return self.bytes[self.start(node) : self.end(node)].decode()

    def line_at(self, place: int) -> int:
        """The number of the line a byte is in."""
        return self.bytes.count(b"\n", 0, place) + 1


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class _Function:
    name: str
    first: int
    last: int
    body: tuple[int, ...]


def _functions(tree: ast.AST, inside: str = "") -> Iterator[_Function]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            name = f"{inside}.{node.name}" if inside else node.name
            if not isinstance(node, ast.ClassDef):
                last = node.end_lineno or node.lineno
                body = tuple(range(node.body[0].lineno, last + 1))
                yield _Function(name, node.lineno, last, body)
            yield from _functions(node, name)
        else:
            yield from _functions(node, inside)


def _statements(tree: ast.AST) -> list[tuple[int, int]]:
    """The lines of every statement, without those of the statements in it."""
    spans = []
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            last = node.end_lineno or node.lineno
            inner = getattr(node, "body", None) or getattr(node, "cases", None)
            if inner:
                line = getattr(inner[0], "lineno", None) or inner[0].pattern.lineno
                last = line - 1
            spans.append((node.lineno, max(node.lineno, last)))
    return spans


def numbered(source: Source, changes: Iterable[Change]) -> list[Mutant]:
    """Mutants of the changes, each with its id; see `valid`."""
    functions = list(_functions(source.tree))
    statements = _statements(source.tree)
    seen: Counter[tuple[str, ...]] = Counter()
    texts: set[tuple[int, int, str]] = set()
    found = []
    for change in sorted(changes, key=lambda one: (one.start, one.end, one.operator, one.text)):
        line = source.line_at(change.start)
        around = [one for one in functions if one.first <= line <= one.last]
        inmost = max(around, key=lambda one: one.first, default=None)
        first, last = max(
            (span for span in statements if span[0] <= line <= span[1]), default=(line, line)
        )
        before = source.bytes[change.start : change.end].decode()
        words = " ".join(source.lines[line - 1].decode().split())
        name = inmost.name if inmost else ""
        key = (name, change.operator, words, " ".join(before.split()), change.text)
        seen[key] += 1
        digest = hashlib.sha256("\0".join((*key, str(seen[key]))).encode()).hexdigest()[:8]
        mutant = Mutant(
            id=f"{source.module}:{name}:{change.operator}:{digest}",
            module=source.module,
            line=line,
            lines=tuple(range(first, last + 1)),
            function=inmost.body if inmost else (),
            operator=change.operator,
            before=before,
            after=change.text,
            start=change.start,
            end=change.end,
        )
        same = (change.start, change.end, change.text)
        if same not in texts:
            texts.add(same)
            found.append(mutant)
    return found


def valid(mutant: Mutant, source: bytes) -> bool:
    """Whether a change compiles and is one: neither brackets nor a comment alone."""
    try:
        tree = ast.parse(mutant.applied(source))
        compile(tree, "mutant", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return ast.dump(tree) != ast.dump(ast.parse(source))
