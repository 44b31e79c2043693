"""Declarations of small tables in CSV files, as TOML."""

import json
from collections.abc import Mapping, Sequence

Columns = Mapping[str, Sequence[str] | Sequence[int] | str | Mapping[str, object]]


def declared(
    path: str,
    entity: str,
    order: str,
    protected: Columns,
    public: Columns | None = None,
    *,
    zone: str | None = None,
    title: str = "",
) -> str:
    """The declaration of a file; its order is a number, or a time if ``zone`` is given.

    A column is a list of labels, of which no others are admitted, or has the keys that are given.
    """
    place = f'kind = "time"\nzone = "{zone}"' if zone else 'kind = "number"'
    parts = [f'title = "{title}"\n'] if title else []
    parts.append(f'[source]\nkind = "csv"\npath = "{path}"\n[entity]\ncolumn = "{entity}"\n')
    parts.append(f'[order]\ncolumn = "{order}"\n{place}\nties = "refuse"\n')
    for column, given in protected.items():
        keys = given if isinstance(given, Mapping) else {"values": given, "outside": "refuse"}
        parts.append(_section(f"protected.{column}", keys))
    for column, given in (public or {}).items():
        keys = given if isinstance(given, Mapping) else {"values": given}
        parts.append(_section(f"public.{column}", keys))
    return "".join(parts)


def _section(header: str, keys: Mapping[str, object]) -> str:
    return f"[{header}]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in keys.items())
