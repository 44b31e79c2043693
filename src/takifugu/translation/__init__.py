"""From a per-entry DP loss to a Pufferfish loss, and back."""
