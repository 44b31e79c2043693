"""How pages look: on a wide and on a narrow screen, in the light and in the dark, on paper."""

import re
from pathlib import Path

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
_SHEET = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
STYLE = PALETTE + _SHEET.replace("/* figure colours */\n", _FIGURE)  # on paper, those of the light
