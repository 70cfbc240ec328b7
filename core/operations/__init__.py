"""Health and statistics as data: what is asked of the database, and how the answers look."""
