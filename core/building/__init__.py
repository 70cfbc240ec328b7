"""Builds an endpoint from routine, comment and defaults, with diagnostics for everything that is wrong."""
