"""Runs tests written in SQL: each file on a connection of its own, which its requests use too."""
