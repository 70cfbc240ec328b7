"""The key ring in use: the supervisor stores and rotates keys, every worker encrypts with them (protection-3)."""
