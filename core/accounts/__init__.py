"""One-time tokens and mail."""
