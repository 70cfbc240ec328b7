"""The console: what the service does, for operators, as JSON and as a page on the admin listener."""
