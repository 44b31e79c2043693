"""Every mutant of a module, without what is only text for people or for the type checker."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from torture.mutants.line_map import PACKAGES
from torture.mutants.mutation import FUNCTIONS, Change, Mutant, Source, numbered
from torture.mutants.operators import changes
from torture.part_report import ROOT

SOURCE = ROOT / "src" / "takifugu"
WORDED = re.compile(r"(^|_)words?\.py$")  # modules of words
SPOKEN = {"__repr__", "__str__", "_repr_html_", "words", "_words", "described", "__dir__"}
RAISED = {"AssertionError", "NotImplementedError"}  # what cannot happen
MESSAGES = {"message", "why", "advice", "hint", "remedy", "repr", "strict"}  # keywords
UNTESTED = {"TypeVar", "NewType", "ParamSpec", "NamedTuple", "lazy_names", "warn", "debug", "info"}
NAMES = {"__all__", "__slots__", "_HOMES"}


def modules(package: str, root: Path = SOURCE) -> list[str]:
    """The modules of a package, relative to the root."""
    found = (root / package).rglob("*.py")
    return sorted(
        path.relative_to(root).as_posix() for path in found if not WORDED.search(path.name)
    )


@cache
def source_of(module: str, root: Path = SOURCE) -> Source:
    """The text of a module as it was when it was first asked for."""
    return Source(root / module, module)


@cache
def mutants_of(module: str, root: Path = SOURCE) -> tuple[Mutant, ...]:
    """Every mutant of a module."""
    source = source_of(module, root)
    return tuple(numbered(source, _changes(source, root)))


def mutant(name: str, root: Path = SOURCE) -> Mutant:
    """The mutant of an id."""
    module = name.partition(":")[0]
    if not (root / module).is_file():
        raise LookupError(f"no module {module}")
    for one in mutants_of(module, root):
        if one.id == name:
            return one
    raise LookupError(f"no mutant {name} in {module} as it is now")


def _changes(source: Source, root: Path) -> Iterator[Change]:
    known = _defaults(root)

    def defaults(name: str) -> frozenset[str]:
        return known.get(name, frozenset())

    def visit(node: ast.AST, parents: list[ast.AST]) -> Iterator[Change]:
        if _skipped(node, parents):
            if isinstance(node, ast.Raise) and not _impossible(node):
                yield from changes(source, node, parents, defaults)
            return
        yield from changes(source, node, parents, defaults)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params", "bases"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from visit(child, [*parents, node])

    yield from visit(source.tree, [])


def _skipped(node: ast.AST, parents: list[ast.AST]) -> bool:
    """Whether nothing in a node is changed."""
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, FUNCTIONS):
        return node.name in SPOKEN or all(_says_nothing(one) for one in node.body)
    if isinstance(node, ast.Expr):
        return not isinstance(node.value, ast.Call | ast.Await | ast.Yield | ast.YieldFrom)
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    if isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        name = node.func.attr if isinstance(node.func, ast.Attribute) else name
        return name in UNTESTED or name in _errors() or name in ("isinstance", "cast")
    if isinstance(node, ast.keyword):
        return node.arg in MESSAGES
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        alias = isinstance(node.value, ast.Subscript) or (
            isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.BitOr)
        )
        named = node.targets[0].id
        return named in NAMES or (
            alias
            and isinstance(parents[-1], ast.Module)
            and named[:1].isupper()
            and not named.isupper()
        )
    return False


def _says_nothing(node: ast.stmt) -> bool:
    return isinstance(node, ast.Pass) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def _impossible(node: ast.Raise) -> bool:
    raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    return isinstance(raised, ast.Name) and raised.id in RAISED


@cache
def _errors() -> frozenset[str]:
    """The names of our kinds of error: what they are given is text for people."""
    tree = ast.parse((SOURCE / "errors.py").read_bytes())
    ours = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    return frozenset(ours | {"ValueError", "TypeError", "KeyError", "RuntimeError"})


@cache
def _defaults(root: Path) -> dict[str, frozenset[str]]:
    """Function or class to the arguments that have a default, over everything of that name."""
    known: dict[str, set[str]] = defaultdict(set)
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, FUNCTIONS):
                given = node.args
                plain = [*given.posonlyargs, *given.args]
                with_default = plain[len(plain) - len(given.defaults) :]
                with_default += [
                    one
                    for one, value in zip(given.kwonlyargs, given.kw_defaults, strict=True)
                    if value is not None
                ]
                known[node.name] |= {one.arg for one in with_default}
            elif isinstance(node, ast.ClassDef):
                known[node.name] |= {
                    one.target.id
                    for one in node.body
                    if isinstance(one, ast.AnnAssign)
                    and isinstance(one.target, ast.Name)
                    and one.value is not None
                }
    return {name: frozenset(given) for name, given in known.items()}


def all_mutants(package: str, root: Path = SOURCE) -> list[Mutant]:
    """Every mutant of a package."""
    return [one for name in modules(package, root) for one in mutants_of(name, root)]


__all__ = ["PACKAGES", "all_mutants", "modules", "mutant", "mutants_of"]
