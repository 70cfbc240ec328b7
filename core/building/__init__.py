"""Routine + comment + defaults → endpoint, with everything that is wrong about it."""
