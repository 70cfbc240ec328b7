"""Upload handlers that run a command for each row of a file: CSV and workbooks."""
