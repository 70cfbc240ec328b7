"""Plans of requests: what each kind asks of the database, and how its result becomes the response."""
