"""What operators see of the parent process: the admin listener, profiles, the console, and PostgREST's admin server."""
