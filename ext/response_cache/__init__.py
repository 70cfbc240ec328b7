"""Kept answers in memory that processes share: its layout, what lies in it, and the table that holds it all."""
