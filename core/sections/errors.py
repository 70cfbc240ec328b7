"""The error for invalid configuration."""

from __future__ import annotations


class ConfigError(Exception):
    """The configuration is invalid. The message contains file, line, column and key, as far as they are known."""
