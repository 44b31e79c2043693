"""A server for a project: owners decide, analysts ask, auditors check.

One process answers requests (`takifugu.server.app`); everything that plans, counts, draws or
translates runs in worker processes (`takifugu.server.work`), which can be killed at any moment: the
ledger is written before an answer leaves. Who may call what stands in one table,
`takifugu.server.access_rules`.
"""
