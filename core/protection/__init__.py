"""The key ring as data."""
