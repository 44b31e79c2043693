"""What every package stands on: exact numbers, rounding, whole-file writes, strict TOML."""
