"""Reading of what PostgREST's interface needs from the system catalogues."""
