"""The exit status of a command. The page of commands has the same table.

Errors are recognised by name, so that the packages that define them need not be imported.
"""

DONE, FAILED, MISTAKE, REFUSED, STORAGE, UNDELIVERED = range(6)
STOPPED = 130  # 128 and the number of the signal, as shells have it

MEANINGS = {
    DONE: "done",
    FAILED: "a check failed: the ledger is not sound, a signature does not hold, or a mechanism"
    " leaks more than claimed",
    MISTAKE: "invalid input, an answer of mostly noise that nobody confirmed, or you answered no;"
    " one line says what to do",
    REFUSED: "refused: by the budget, or until the owner decides; nothing was released",
    STORAGE: "the ledger, the data or a driver is unavailable; nothing was released",
    UNDELIVERED: "released and charged, but not written; the same query again is free",
    STOPPED: "interrupted (Ctrl-C); a release that had begun may have been charged",
}
BY_NAME = {
    "BudgetExceeded": REFUSED,
    "BatchRefused": REFUSED,
    "ApprovalNeeded": REFUSED,
    "ApprovalRefused": REFUSED,
    "NoBudget": REFUSED,
    "NotAccepted": REFUSED,
    "CellsChanged": REFUSED,
    "SameRows": REFUSED,
    "TwoBudgets": REFUSED,
    "ScheduleLocked": STORAGE,
    "LedgerUnavailable": STORAGE,
    "LedgerUnwritable": STORAGE,
    "LedgerDamaged": STORAGE,
    "LedgerSetBack": STORAGE,
    "DatabaseFailed": STORAGE,
    "DriverMissing": STORAGE,
    "PdfUnavailable": STORAGE,
    "SigningUnavailable": STORAGE,
    "SignatureRefused": FAILED,
    "Undelivered": UNDELIVERED,
}
EPILOG = "\b\nExit status:\n" + "\n".join(
    f"  {code}  {meaning}" for code, meaning in MEANINGS.items()
)


def status_of(error: BaseException) -> int:
    """The status of an error: that of the nearest of its classes that has one."""
    for kind in type(error).__mro__:
        if kind.__name__ in BY_NAME:
            return BY_NAME[kind.__name__]
    return MISTAKE
