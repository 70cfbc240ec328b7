"""Runs of calls: pool selection, settings in front of the call, and runs on dedicated connections."""
