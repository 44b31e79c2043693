"""The status that a command ends with. docs/commands.md has the same table.

Errors are told apart by name: the rooms that define them are not imported to say that a word was
misspelt.
"""

DONE, FAILED, MISTAKE, REFUSED, STORAGE, UNDELIVERED = range(6)
STOPPED = 130  # 128 and the number of the signal, as shells have it

MEANINGS = {
    DONE: "done",
    FAILED: "a check failed: the ledger is not sound, or a mechanism leaks more than is claimed",
    MISTAKE: "a mistake in what was given, or you said no; one line says what to do",
    REFUSED: "refused: by the budget, or until its owner decides; nothing was released",
    STORAGE: "the ledger, the data or a driver cannot be used now; nothing was released",
    UNDELIVERED: "released and paid for, but not written; ask the same again, it is free",
    STOPPED: "you stopped it (Ctrl-C); a release that had begun may be paid for",
}
BY_NAME = {
    "BudgetExceeded": REFUSED,
    "NoBudget": REFUSED,
    "NotAccepted": REFUSED,
    "CellsChanged": REFUSED,
    "SameRows": REFUSED,
    "LedgerUnavailable": STORAGE,
    "LedgerUnwritable": STORAGE,
    "LedgerDamaged": STORAGE,
    "LedgerSetBack": STORAGE,
    "DatabaseFailed": STORAGE,
    "DriverMissing": STORAGE,
    "Undelivered": UNDELIVERED,
}
EPILOG = "\b\nExit status:\n" + "\n".join(f"  {code}  {told}" for code, told in MEANINGS.items())


def status_of(error: BaseException) -> int:
    """The status for an error, by the nearest of its classes that has one."""
    for kind in type(error).__mro__:
        if kind.__name__ in BY_NAME:
            return BY_NAME[kind.__name__]
    return MISTAKE
