"""Tests written in SQL, as data: what a file says, what came of it, and how that is told."""
