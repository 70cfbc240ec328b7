"""PostgREST's own configuration: its file, its environment variables, and what they mean for this service."""
