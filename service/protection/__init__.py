"""The key ring at work: kept and renewed by the supervisor, used by every worker (spec 2.11)."""
