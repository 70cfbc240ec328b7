"""Parsers and writers of small languages: texts of PostgreSQL, JSON, HTTP and configuration. No dependencies."""
