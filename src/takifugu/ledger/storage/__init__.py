"""Where a ledger is kept: tables, digests and transactions in SQLite or PostgreSQL."""
