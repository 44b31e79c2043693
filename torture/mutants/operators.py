"""The changes that are made: each is a slip that people make, or a bound that is off by one."""

import ast
import re
from collections.abc import Callable, Iterator

from torture.mutants.mutation import Change, Source

COMPARED: dict[type[ast.cmpop], tuple[tuple[str, str], ...]] = {
    ast.Lt: (("<", "<="), ("<", ">=")),
    ast.LtE: (("<=", "<"), ("<=", ">")),
    ast.Gt: ((">", ">="), (">", "<=")),
    ast.GtE: ((">=", ">"), (">=", "<")),
    ast.Eq: (("==", "!="),),
    ast.NotEq: (("!=", "=="),),
    ast.In: (("in", "not in"),),
    ast.NotIn: (("not in", "in"),),
    ast.Is: (("is", "is not"),),
    ast.IsNot: (("is not", "is"),),
}
ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "/"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
    ast.MatMult: ("@", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
}
SWAPPED = {
    "min": "max",
    "any": "all",
    "floor": "ceil",
    "minimum": "maximum",
    "argmin": "argmax",
    "float_up": "float_down",
    "fmin": "fmax",
    "amin": "amax",
    "nanmin": "nanmax",
    "up": "down",
    "isdisjoint": "issuperset",
    "bisect_left": "bisect_right",
    "lower": "upper",
    "union": "intersection",
    "startswith": "endswith",
    "zeros": "ones",
    "cumsum": "cumprod",
    "expm1": "exp",
    "log1p": "log",
}
SWAPPED |= {other: name for name, other in SWAPPED.items() if name not in ("expm1", "log1p")}
OURS = {"up", "down", "float_up", "float_down"}  # of takifugu._core.rounding
ROUNDING = "__import__('takifugu._core.rounding')._rounding"
COMMUTES = {"min", "max", "minimum", "maximum", "isinstance", "issubclass", "gcd", "hypot", "cast"}
COMMUTES |= {"least", "where_least", "together"}  # of compiled loops
COMMUTES |= {"insert", "update"}  # columns by name
COMMUTES |= {"same_person", "types_alone", "suppress"}  # of names and errors, in either order
COMMUTES |= {"getattr", "isclose", "logaddexp", "multiply", "add", "array_equal", "allclose"}
NO_DEFECT = {"errstate", "catch_warnings", "localcontext"}  # contexts that change no result
Defaults = Callable[[str], frozenset[str]]


def changes(
    source: Source, node: ast.AST, parents: list[ast.AST], defaults: Defaults
) -> Iterator[Change]:
    """Every change of one node; ``parents`` are around it, the inmost last."""
    for kind, made in _MADE:
        if isinstance(node, kind):
            yield from made(source, node, parents)
    if isinstance(node, ast.Call):
        yield from _without_keyword(source, node, defaults)


def _whole(source: Source, operator: str, node: ast.AST, text: str) -> Change:
    return Change(operator, source.start(node), source.end(node), text, node)


def _between(
    source: Source, operator: str, left: ast.AST, right: ast.AST, old: str, new: str, node: ast.AST
) -> Iterator[Change]:
    """Replace the operator that stands between two operands, whatever brackets are there."""
    start, end = source.end(left), source.start(right)
    gap = source.bytes[start:end].decode()
    pattern = rf"\b{old}\b".replace(" ", r"\s+") if old[0].isalpha() else re.escape(old)
    hit = re.search(pattern, gap)
    if hit:
        at = start + len(gap[: hit.start()].encode())
        yield Change(operator, at, at + len(hit.group().encode()), new, node)


def _compare(source: Source, node: ast.Compare, _: object) -> Iterator[Change]:
    operands = [node.left, *node.comparators]
    for place, kind in enumerate(node.ops):
        for old, new in COMPARED[type(kind)]:
            yield from _between(
                source, "compare", operands[place], operands[place + 1], old, new, node
            )


def _arithmetic(source: Source, node: ast.BinOp, _: object) -> Iterator[Change]:
    old, new = ARITHMETIC.get(type(node.op), ("", ""))
    texts = (node.left, node.right)
    if not old or any(_is_text(one) for one in texts):
        return
    yield from _between(source, "arithmetic", node.left, node.right, old, new, node)


def _is_text(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    )


def _assigned_arithmetic(source: Source, node: ast.AugAssign, _: object) -> Iterator[Change]:
    old, new = ARITHMETIC.get(type(node.op), ("", ""))
    if old and not _is_text(node.value):
        yield from _between(source, "arithmetic", node.target, node.value, old, new, node)
    yield _whole(source, "delete", node, "pass")


def _logic(source: Source, node: ast.BoolOp, _: object) -> Iterator[Change]:
    old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
    for left, right in zip(node.values, node.values[1:], strict=False):
        yield from _between(source, "logic", left, right, old, new, node)


def _unary(source: Source, node: ast.UnaryOp, _: object) -> Iterator[Change]:
    if isinstance(node.op, ast.Not | ast.USub | ast.Invert):
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            if isinstance(node.operand.value, int) and node.operand.value == 1:
                yield _whole(source, "number", node, "0")
            return
        yield _whole(source, "unary", node, f"({source.text(node.operand)})")


def _constant(source: Source, node: ast.Constant, parents: list[ast.AST]) -> Iterator[Change]:
    value = node.value
    if isinstance(value, bool):
        yield _whole(source, "constant", node, str(not value))
    elif isinstance(value, int):
        yield _whole(source, "number", node, str(value + 1))
        if value == 1:
            yield _whole(source, "number", node, "0")
        elif value > 1:
            yield _whole(source, "number", node, str(value - 1))
    elif isinstance(value, float):
        yield _whole(source, "number", node, repr(value + 1.0))
    elif isinstance(value, str) and value.strip():
        holder = parents[-1]
        if isinstance(holder, ast.Tuple | ast.Set | ast.List):
            holder = parents[-2]
        if isinstance(holder, ast.Compare):
            yield _whole(source, "text", node, '"another"')


def _name(source: Source, node: ast.Name, parents: list[ast.AST]) -> Iterator[Change]:
    around = parents[-1]
    if not isinstance(around, ast.Call) or around.func is not node:
        return
    if node.id in OURS:
        yield _whole(source, "swap", node, f"{ROUNDING}.{SWAPPED[node.id]}")
    elif node.id in ("min", "max", "any", "all", "floor", "ceil"):
        yield _whole(source, "swap", node, SWAPPED[node.id])
    elif node.id == "sum":
        yield _whole(source, "swap", node, "max")


def _attribute(source: Source, node: ast.Attribute, parents: list[ast.AST]) -> Iterator[Change]:
    if not isinstance(node.ctx, ast.Load):
        return
    end = source.end(node)
    if node.attr == "inf":
        around = parents[-1]
        if isinstance(around, ast.UnaryOp) and isinstance(around.op, ast.USub):
            return
        yield _whole(source, "infinity", node, f"(-{source.text(node)})")
    if node.attr in SWAPPED and isinstance(parents[-1], ast.Call) and parents[-1].func is node:
        yield Change("swap", end - len(node.attr), end, SWAPPED[node.attr], node)
    if node.attr == "sum" and isinstance(parents[-1], ast.Call) and parents[-1].func is node:
        yield Change("swap", end - 3, end, "max", node)


def _condition(
    source: Source, node: ast.If | ast.IfExp, parents: list[ast.AST]
) -> Iterator[Change]:
    del parents
    if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        return
    for text in ("True", "False"):
        yield _whole(source, "condition", node.test, text)


def _loop(source: Source, node: ast.While, _: object) -> Iterator[Change]:
    if not isinstance(node.test, ast.Constant):
        yield _whole(source, "condition", node.test, "False")


def _filter(source: Source, node: ast.comprehension, _: object) -> Iterator[Change]:
    for test in node.ifs:
        yield _whole(source, "condition", test, "True")


def _slice(source: Source, node: ast.Slice, _: object) -> Iterator[Change]:
    for bound in (node.lower, node.upper):
        if bound is not None and not _number(bound):
            yield _whole(source, "slice", bound, f"({source.text(bound)}) + 1")


def _number(node: ast.AST) -> bool:
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(inner, ast.Constant)


def _called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _arguments(source: Source, node: ast.Call, _: object) -> Iterator[Change]:
    if _called(node) in COMMUTES or any(isinstance(one, ast.Starred) for one in node.args):
        return
    for left, right in zip(node.args, node.args[1:], strict=False):
        if isinstance(left, ast.GeneratorExp) or isinstance(right, ast.GeneratorExp):
            continue
        first, second = source.text(left), source.text(right)
        if first == second:
            continue
        between = source.bytes[source.end(left) : source.start(right)].decode()
        text = f"{second}{between}{first}"
        yield Change("arguments", source.start(left), source.end(right), text, node)


def _without_keyword(source: Source, node: ast.Call, defaults: Defaults) -> Iterator[Change]:
    known = defaults(_called(node))
    for keyword in node.keywords:
        if keyword.arg in known:
            start, end = source.start(keyword), source.end(keyword)
            after = re.match(rb"\s*,\s*", source.bytes[end:])
            if after:
                end += after.end()
            else:
                before = re.search(rb",\s*$", source.bytes[:start])
                start = before.start() if before else start
            yield Change("keyword", start, end, "", node)


def _deleted(source: Source, node: ast.stmt, parents: list[ast.AST]) -> Iterator[Change]:
    if isinstance(node, ast.Expr) and not isinstance(node.value, ast.Call):
        return
    if isinstance(node, ast.Assign) and not any(
        isinstance(one, ast.Attribute | ast.Subscript) for one in node.targets
    ):
        return
    if isinstance(node, ast.Raise) and _sole_of_if(node, parents[-1]):
        return  # the same as a condition that never holds
    yield _whole(source, "delete", node, "pass")


def _sole_of_if(node: ast.stmt, parent: ast.AST) -> bool:
    return isinstance(parent, ast.If) and parent.body == [node]


def _context(source: Source, node: ast.With, _: object) -> Iterator[Change]:
    if any(item.optional_vars is not None for item in node.items):
        return
    names = {
        _called(one.context_expr) for one in node.items if isinstance(one.context_expr, ast.Call)
    }
    if names & NO_DEFECT:
        return
    last = node.items[-1].context_expr
    end = source.bytes.index(b":", source.end(last))
    yield Change("context", source.start(node), end, "if True", node)


_MADE: tuple[tuple[type | tuple[type, ...], Callable[..., Iterator[Change]]], ...] = (
    (ast.Compare, _compare),
    (ast.BinOp, _arithmetic),
    (ast.AugAssign, _assigned_arithmetic),
    (ast.BoolOp, _logic),
    (ast.UnaryOp, _unary),
    (ast.Constant, _constant),
    (ast.Name, _name),
    (ast.Attribute, _attribute),
    ((ast.If, ast.IfExp), _condition),
    (ast.While, _loop),
    (ast.comprehension, _filter),
    (ast.Slice, _slice),
    (ast.Call, _arguments),
    ((ast.Expr, ast.Assign, ast.Raise, ast.Continue, ast.Break), _deleted),
    (ast.With, _context),
)
