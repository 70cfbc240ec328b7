"""Reads the catalogue of PostgreSQL: connection in, frozen `Catalog` out."""
