"""Running it: settings, limits, logs, metrics, health, checks."""
