"""``python -m torture.oracles.again FILE …``: compare instances that were kept once more."""

import argparse
import json
import sys
from pathlib import Path

from torture.oracles.comparison import Compared
from torture.oracles.families import BY_NAME
from torture.oracles.runner import Refused, told


def main() -> int:
    """Print every statement and what is wrong with it; 1 if something is."""
    options = argparse.ArgumentParser(prog="python -m torture.oracles.again", description=__doc__)
    options.add_argument("files", nargs="+", type=Path)
    wrong = 0
    for path in options.parse_args().files:
        kept = json.loads(path.read_text(encoding="utf-8"))
        family = BY_NAME[kept["family"]]
        print(f"{path.name}: {family.name}; {family.oracle}")
        try:
            for one in told(family, kept["instance"]):
                faults = list(one.faults(family.off)) if isinstance(one, Compared) else []
                wrong += len(faults)
                print(f"  {one}")
                print("".join(f"  WRONG: {fault}\n" for fault in faults), end="")
        except Refused as refused:
            print(f"  refused: {refused}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
