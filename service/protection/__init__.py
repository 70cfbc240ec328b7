"""The key ring at work: kept and renewed by the supervisor, used by every worker (protection-3)."""
