"""Output of the configuration: effective values, JSON Schema, page of the manual, and starter file."""
