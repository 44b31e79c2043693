"""The words of a privacy report, for readers who have not met them.

`docs/reference/glossary.md` says the same of each word that both have; a test compares them.
"""

GLOSSARY = {
    "Row": "one line of a table. That a row exists, whose it is and when it was are public.",
    "Cell": "the value of one protected column in one row. A guarantee is about cells.",
    "Entity": "whom a row belongs to: a person, a household, a device.",
    "Label": "a declared value of a protected column, such as ward.",
    "Key": "a value of a public column, which names a group.",
    "Prior": "what an adversary may believe about the values before anything is released, as a"
    " distribution.",
    "Entry": "one variable of a prior, for example the state at one time. A row of the table holds"
    " the value of one entry.",
    "Secret pair": "two values that one cell may hold, between which an adversary must not be able"
    " to tell. Of numbers: two that are at most a stated distance apart.",
    "Per-entry loss": "the differential privacy loss of a release if one entry changes: an ε, or a"
    " ρ. This is what the ledger adds up.",
    "Pufferfish ε": "by how much a release can change the odds between the two values of a secret"
    " pair, for an adversary who believes the prior: by a factor of at most e^ε. Budgets are in"
    " this unit.",
    "Odds": "how likely one thing is against another. 50 : 50 is no idea at all; 73 : 27 is 73"
    " in 100 for the one and 27 in 100 for the other.",
    "Noise": "random numbers that are added to an answer, or a random choice, so that no single"
    " cell shows in it.",
    "95 % interval": "a range that holds the number without noise with a probability of at least"
    " 0.95.",
    "Alone": "the Pufferfish ε of a release if nothing else were ever released.",
    "On top": "by how much a release raises the Pufferfish ε of all that was released before."
    " Per-entry losses add up, and Pufferfish losses need not: the loss on top is often smaller"
    " than the loss alone, and may be larger.",
    "Charge": "the event in the ledger that pays for a release, written before anything protected"
    " is read.",
    "Ledger": "the file or database that records every charge.",
    "Influence curve": "for each number of entries around a secret one that are counted as exposed,"
    " how much all others can still reveal about it.",
    "Fingerprint": "a SHA-256 hash that identifies a prior, a policy or an event: the smallest"
    " change gives another one.",
}
