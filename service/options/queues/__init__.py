"""Options of what waits in the database: jobs, mail, webhooks."""
