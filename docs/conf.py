"""How Sphinx builds the site: ``make docs``. Nothing is fetched, then or when a page is read."""

import json
import re
from html import escape
from importlib.resources import files
from typing import Any

from docutils.nodes import SkipNode, math, math_block
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from pygments.lexers.special import TextLexer
from sphinx.domains.python import PyObject
from sphinx.errors import SphinxError

import takifugu

project = "takifugu"
author = "the takifugu authors"
release = takifugu.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["examples"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown", ".ipynb": "markdown"}

myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 4

autodoc_default_options = {"members": True, "imported-members": True, "member-order": "bysource"}
default_role = "py:obj"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 88
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True  # an attribute that is also a member is described once

html_theme = "furo"
html_title = f"takifugu {release}"
html_static_path = ["_static", str(files("ziamath.fonts") / "STIXTwoMath-Regular.ttf")]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_math_renderer = "mathml"

NAMED = re.compile(r"^```(csv|json|toml|python|sh|text)[ \t]+([\w.-]+)[ \t]*$", re.MULTILINE)
BIG = re.compile(r"\\([Bb]igg?)([(\[|)\]])")  # docutils knows \Bigl and \Bigr, but not \Big
APPLIED = re.compile(r"(<mo>&ApplyFunction;</mo>)(?!\s*<mo)")  # "log t" is set with a space
MARKED = re.compile(r"^```console[ \t]+exit=\d+[ \t]*$", re.MULTILINE)


def read_notebooks(app: Any, page: str, source: list[str]) -> None:
    """Show a notebook as a page: its text, and its code in blocks."""
    if str(app.env.doc2path(page)).endswith(".ipynb"):
        cells = json.loads(source[0])["cells"]
        texts = ["".join(cell["source"]) for cell in cells]
        source[0] = "\n\n".join(
            text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```"
            for cell, text in zip(cells, texts, strict=True)
        )


def show_file_names(_app: Any, _page: str, source: list[str]) -> None:
    """Put the name of a file, which a page writes beside a fence's language, above the block."""
    named = NAMED.sub(r"```{code-block} \1\n:caption: \2\n", source[0])
    source[0] = MARKED.sub("```console", named)


def mathml(source: str, *, block: bool) -> str:
    """A formula as MathML, which browsers set by themselves, without a script."""
    known = source.replace("…", r"\ldots ").replace(r"\dots", r"\ldots")
    known = BIG.sub(lambda big: f"\\{big[1]}{'r' if big[2] in ')]' else 'l'}{big[2]}", known)
    try:
        return APPLIED.sub(r'\1<mspace width="0.17em"/>', tex2mathml(known, as_block=block))
    except MathError as error:
        raise SphinxError(f"a formula cannot be set: {error}: {source}") from error


def inline_formula(writer: Any, node: math) -> None:
    """Write a formula that stands in a sentence."""
    writer.body.append(f'<span class="math">{mathml(node.astext(), block=False)}</span>')
    raise SkipNode


def block_formula(writer: Any, node: math_block) -> None:
    """Write a formula on lines of its own."""
    label = f' id="{escape(str(node["ids"][0]))}"' if node["ids"] else ""
    writer.body.append(f'<div class="math"{label}>{mathml(node.astext(), block=True)}</div>')
    raise SkipNode


def setup(app: Any) -> None:
    """Register the above."""
    for fields in PyObject.doc_field_types:
        if fields.name == "variable":
            fields.label = "Attributes"
    app.add_lexer("csv", TextLexer)
    app.connect("source-read", read_notebooks)
    app.connect("source-read", show_file_names)
    app.add_html_math_renderer("mathml", (inline_formula, None), (block_formula, None))
