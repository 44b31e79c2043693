"""``python -m takifugu`` is the command ``takifugu``."""

from takifugu.cli import main

main()
