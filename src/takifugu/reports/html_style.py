"""How pages look."""

STYLE = """\
:root {
  --ink: #1d2128; --soft: #5b6472; --paper: #ffffff; --box: #f5f6f8; --line: #d9dde3;
  --link: #24509a; --alarm: #a33a35;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e6e8ec; --soft: #a2abb8; --paper: #16181d; --box: #1f232a; --line: #363c46;
    --link: #8fb3f0; --alarm: #f0928d;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 56rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.55 system-ui, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
}
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 0.75rem; }
h2 {
  font-size: 1.3rem; margin: 2.75rem 0 0.75rem; padding-top: 0.75rem;
  border-top: 1px solid var(--line);
}
p { margin: 0.6rem 0; max-width: 46rem; }
header p { color: var(--soft); }
a { color: var(--link); }
nav ol { columns: 2 16rem; padding-left: 1.4rem; margin: 1rem 0; }
pre {
  background: var(--box); border-left: 3px solid var(--line); margin: 0.9rem 0;
  padding: 0.8rem 1rem; white-space: pre-wrap; overflow-wrap: anywhere;
  font: 0.85rem/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace;
}
pre.alarm { border-left-color: var(--alarm); color: var(--alarm); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.2rem 1.25rem; margin: 0.9rem 0; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
.box { overflow-x: auto; margin: 0.9rem 0; }
.tall { max-height: 30rem; overflow-y: auto; border: 1px solid var(--line); }
.tall thead th { position: sticky; top: 0; }
table { border-collapse: collapse; width: 100%; font-size: 0.92rem; }
caption { text-align: left; color: var(--soft); padding: 0.3rem 0.6rem; }
th, td {
  text-align: left; padding: 0.28rem 0.6rem; border-bottom: 1px solid var(--line);
  vertical-align: top;
}
th { font-weight: 600; background: var(--box); }
.number { text-align: right; font-variant-numeric: tabular-nums; }
figure { margin: 1.2rem 0; }
figure svg { display: block; max-width: 100%; height: auto; fill: currentColor; }
figure svg * { stroke-linejoin: round; }
figcaption { color: var(--soft); font-size: 0.92rem; margin-top: 0.4rem; max-width: 46rem; }
footer { margin-top: 3rem; color: var(--soft); font-size: 0.88rem; }
@media (max-width: 34rem) { dl { grid-template-columns: 1fr; } dd { margin-bottom: 0.5rem; } }
@media print {
  :root {
    --ink: #000000; --soft: #444444; --paper: #ffffff; --box: #ffffff; --line: #bbbbbb;
    --link: #000000; --alarm: #000000;
  }
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav { display: none; }
  pre { font-size: 8pt; }
  .tall { max-height: none; overflow: visible; border: none; }
  .tall thead th { position: static; }
  h2 { break-after: avoid; }
  figure, tr, pre { break-inside: avoid; }
}
"""
