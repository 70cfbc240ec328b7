"""Identity of callers and what follows from it, as data and pure functions: claims, schemes, login rows, access."""
