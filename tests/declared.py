"""Declarations of small tables in CSV files, as TOML."""

import json
from collections.abc import Mapping, Sequence

Labels = Mapping[str, Sequence[str] | Sequence[int] | str]


def declared(
    path: str,
    entity: str,
    order: str,
    protected: Labels,
    public: Labels | None = None,
    *,
    zone: str | None = None,
    title: str = "",
) -> str:
    """The declaration of a file; its order is a number, or a time if ``zone`` is given."""
    place = f'kind = "time"\nzone = "{zone}"' if zone else 'kind = "number"'
    parts = [f'title = "{title}"\n'] if title else []
    parts.append(f'[source]\nkind = "csv"\npath = "{path}"\n[entity]\ncolumn = "{entity}"\n')
    parts.append(f'[order]\ncolumn = "{order}"\n{place}\nties = "refuse"\n')
    for column, labels in protected.items():
        parts.append(f'[protected.{column}]\nvalues = {json.dumps(labels)}\noutside = "refuse"\n')
    for column, labels in (public or {}).items():
        parts.append(f"[public.{column}]\nvalues = {json.dumps(labels)}\n")
    return "".join(parts)
