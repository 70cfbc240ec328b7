"""Results in other formats than JSON: HTML tables, spreadsheets, Parquet, and the exports that a request can choose."""
