"""Outgoing requests as data, parsed from the comments of composite types."""
