"""Table formats (HTML tables, spreadsheets) as data: options, checks, and names of downloaded files."""
