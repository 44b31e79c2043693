"""How pages look: on a wide and on a narrow screen, in the light and in the dark, on paper."""

import re

# The colours of figures, as matplotlib draws them, and as they are in the dark. Each has a contrast
# of at least 4.5 with the page behind it, so that words may have them too.
FIGURE_COLOURS = {
    "#3b62a3": "#8fb3f0",  # what was released, spent or believed
    "#b3561f": "#eda981",  # something beside it
    "#b53a3e": "#f0928d",  # a limit, or bad news
    "#2f7a45": "#86cf9a",  # good news
    "#666d78": "#a2abb8",  # what matters less
    "#7b4ba5": "#c3a2ea",  # one more, where there are many
}
BLUE, ORANGE, RED, GREEN, GREY, PURPLE = FIGURE_COLOURS
_FIGURE = "".join(f"  --figure-{k}: {light};\n" for k, light in enumerate(FIGURE_COLOURS))
_IN_THE_DARK = "".join(
    f"    --figure-{k}: {dark};\n" for k, dark in enumerate(FIGURE_COLOURS.values())
)


def themed(html: str) -> str:
    """The colours of figures as the reader's choice of light or dark has them."""
    for place, colour in enumerate(FIGURE_COLOURS):
        html = re.sub(rf"(?<=: ){colour}\b", f"var(--figure-{place})", html)
    return html


# The colours of pages; those of a server have them too.
PALETTE = f"""\
:root {{
  --ink: #1d2128; --soft: #5b6472; --paper: #ffffff; --box: #f3f5f8; --line: #d5dae1;
  --link: #24509a; --alarm: #a33a35; --notice: #8a5a00; --shade: rgba(20, 25, 35, 0.32);
  --clear: rgba(255, 255, 255, 0);
{_FIGURE}}}
@media (prefers-color-scheme: dark) {{
  :root {{
    --ink: #e6e8ec; --soft: #a9b2bf; --paper: #16181d; --box: #21252d; --line: #3a414c;
    --link: #8fb3f0; --alarm: #f0928d; --notice: #e6b85c; --shade: rgba(160, 185, 225, 0.42);
    --clear: rgba(22, 24, 29, 0);
{_IN_THE_DARK}  }}
}}
"""
STYLE = (
    PALETTE
    + """\
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; }
body {
  margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 56rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.55 system-ui, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
  overflow-wrap: break-word;
}
.skip { position: absolute; left: -100rem; }
.skip:focus {
  position: fixed; left: 1rem; top: 1rem; padding: 0.5rem 1rem; background: var(--paper);
  border: 2px solid var(--link); z-index: 2;
}
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 0.75rem; }
h2 {
  font-size: 1.45rem; line-height: 1.25; margin: 2.75rem 0 0.75rem; padding-top: 0.9rem;
  border-top: 2px solid var(--line);
}
h3 { font-size: 1.15rem; line-height: 1.3; margin: 2rem 0 0.5rem; }
h4 { font-size: 1rem; line-height: 1.35; margin: 1.6rem 0 0.4rem; }
p { margin: 0.6rem 0; max-width: 46rem; }
li { margin: 0.25rem 0; max-width: 44rem; }
header p { color: var(--soft); }
a { color: var(--link); }
nav > ol { padding-left: 1.4rem; margin: 1rem 0; }
nav ol ol { padding-left: 1.2rem; list-style: none; columns: 2 14rem; font-size: 0.95rem; }
nav ol ol li { break-inside: avoid; margin: 0; padding: 0.12rem 0; }
.notice {
  border-left: 4px solid var(--notice); background: var(--box); margin: 1rem 0;
  padding: 0.35rem 1rem; max-width: 46rem;
}
.notice.alarm { border-left-color: var(--alarm); }
.notice.alarm p { color: var(--alarm); font-weight: 600; }
pre {
  background: var(--box); border-left: 3px solid var(--line); margin: 0.9rem 0;
  padding: 0.8rem 1rem; white-space: pre-wrap; overflow-wrap: anywhere;
  font: 0.85rem/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace;
}
pre.alarm { border-left-color: var(--alarm); color: var(--alarm); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.2rem 1.25rem; margin: 0.9rem 0; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
dl.words { display: block; max-width: 46rem; }
dl.words dt { color: var(--ink); font-weight: 600; margin-top: 0.7rem; }
.box {
  overflow: auto; margin: 0.9rem 0; scrollbar-width: thin; scrollbar-color: var(--soft) var(--box);
  background:
    linear-gradient(to right, var(--paper) 40%, var(--clear)) left / 2.4rem 100% no-repeat local,
    linear-gradient(to left, var(--paper) 40%, var(--clear)) right / 2.4rem 100% no-repeat local,
    linear-gradient(to right, var(--shade), transparent) left / 0.8rem 100% no-repeat scroll,
    linear-gradient(to left, var(--shade), transparent) right / 0.8rem 100% no-repeat scroll;
}
.box:focus-visible, a:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
.tall {
  max-height: 30rem; border: 1px solid var(--line);
  background:
    linear-gradient(to right, var(--paper) 40%, var(--clear)) left / 2.4rem 100% no-repeat local,
    linear-gradient(to left, var(--paper) 40%, var(--clear)) right / 2.4rem 100% no-repeat local,
    linear-gradient(to top, var(--paper) 40%, var(--clear)) bottom / 100% 2.4rem no-repeat local,
    linear-gradient(to right, var(--shade), transparent) left / 0.8rem 100% no-repeat scroll,
    linear-gradient(to left, var(--shade), transparent) right / 0.8rem 100% no-repeat scroll,
    linear-gradient(to top, var(--shade), transparent) bottom / 100% 0.8rem no-repeat scroll;
}
/* Said where a table is wider than its box: it needs at least so many letters in a line. */
.sideways { container-type: inline-size; }
.sideways::before {
  content: "scroll sideways for more →"; display: block; position: sticky; left: 0; width: 100cqw;
  height: 0; height: clamp(0px, (var(--letters) * 0.9ch - 100cqw) * 99, 1.5rem); overflow: hidden;
  padding: 0 0.8rem; box-sizing: border-box; color: var(--link); font-size: 0.85rem;
}
.tall thead th { position: sticky; top: 0; background: var(--box); }
/* Tables of many columns: as wide as the window allows, however wide the text is. */
.wide { width: min(100vw - 3.5rem, 84rem); margin-left: calc(50% - min(50vw - 1.75rem, 42rem)); }
.results td { min-width: 0; }
.results { font-size: 0.82rem; }
.results th, .results td { padding: 0.25rem 0.32rem; }
.results tbody th:first-child, .results thead tr:first-child th:first-child {
  position: sticky; left: 0; background: var(--paper); z-index: 1;
}
.results th[scope="colgroup"], .results thead th { vertical-align: bottom; }
.results th[scope="row"] { font-weight: 400; }
.results small { color: var(--soft); }
.results .difference > * { border-bottom: 2px solid var(--line); }
.results .ours > *, .results .printed > * { border-bottom: none; }
.results .ours > [rowspan] { border-bottom: 2px solid var(--line); }
table { border-collapse: collapse; width: 100%; font-size: 0.92rem; }
caption { text-align: left; color: var(--soft); padding: 0.3rem 0.6rem; }
th, td {
  text-align: left; padding: 0.28rem 0.6rem; border-bottom: 1px solid var(--line);
  vertical-align: top;
}
th { font-weight: 600; border-bottom: 2px solid var(--line); }
td { min-width: 4.5rem; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
figure { margin: 1.2rem 0; }
figure svg { display: block; max-width: 100%; height: auto; fill: currentColor; }
figure svg * { stroke-linejoin: round; }
figcaption { color: var(--soft); font-size: 0.92rem; margin-top: 0.4rem; max-width: 46rem; }
footer { margin-top: 3rem; color: var(--soft); font-size: 0.88rem; }
@media (max-width: 40rem) {
  body { padding: 1.25rem 1rem 3rem; }
  h1 { font-size: 1.55rem; }
  h2 { font-size: 1.3rem; }
  dl { grid-template-columns: 1fr; }
  dd { margin-bottom: 0.5rem; }
  figure svg { max-width: none; width: calc(0.82 * var(--wide)); }
  table { font-size: 0.85rem; }
  th, td { padding: 0.28rem 0.4rem; }
  td { min-width: 0; }
  .wide { width: auto; margin-left: 0; }
}
@page {
  size: A4; margin: 18mm 16mm 20mm;
  @bottom-right { content: counter(page) " / " counter(pages); font: 8pt sans-serif; }
}
@media print {
  :root {
    --ink: #000000; --soft: #444444; --paper: #ffffff; --box: #ffffff; --line: #bbbbbb;
    --link: #000000; --alarm: #7a1f1b; --notice: #555555;
"""
    + _FIGURE
    + """\
  }
  html { font-size: 10pt; }
  body { max-width: none; padding: 0; }
  .skip { display: none; }
  nav a { text-decoration: none; }
  pre { font-size: 0.8rem; }
  .box { background: none; overflow: visible; }
  .wide { width: auto; margin-left: 0; }
  .results { font-size: 0.62rem; }
  .results tbody th:first-child { position: static; }
  .sideways { container-type: normal; }
  .sideways::before { display: none; }
  .tall { max-height: none; border: none; }
  .tall thead th { position: static; }
  th, td { min-width: 0; overflow-wrap: anywhere; }
  .whole th, .whole td { overflow-wrap: break-word; }
  h2, h3, h4, caption, .leads { break-after: avoid; }
  h2 { margin-top: 1.6rem; }
  figure, tr, pre, .notice, dl.words dd { break-inside: avoid; }
  figcaption { break-before: avoid; }
  thead { display: table-header-group; }
  figure svg { max-width: 100%; max-height: 215mm; width: auto; }
}
"""
)
