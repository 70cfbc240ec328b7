"""Values that are encrypted in the database: sealed on their way in, opened on their way out (protection-8 to
protection-13)."""
