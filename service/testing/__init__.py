"""Runs SQL tests: each file on a connection of its own, which its requests use too."""
