"""Results in other formats than JSON: HTML tables and spreadsheets."""
