"""Schema snapshots: reading the database, and detecting that it has changed."""
