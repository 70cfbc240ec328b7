"""Small languages, read and written: texts of PostgreSQL, JSON, HTTP and configuration. Knows nothing but text."""
