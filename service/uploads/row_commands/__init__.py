"""Upload handlers that run a command for each row of a file: CSV, JSON lines and workbooks."""
