"""Data of health, statistics, metrics and the security audit: queries, findings and output formats."""
