"""Values that are encrypted in the database: sealed on their way in, opened on their way out (reference 04, 14)."""
