"""Compilation of endpoints into handlers: the list of steps, in order."""
