"""Who is calling: sessions, tokens, passwords, and what of them is shared by all workers."""
