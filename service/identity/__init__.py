"""Identity of callers: sessions, tokens, passwords, and the parts of them that all workers share."""
