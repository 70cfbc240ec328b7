"""What a configuration mistake looks like: place, key, what is wrong, what would be right."""

from __future__ import annotations


class ConfigError(Exception):
    """The configuration can't be used. The message is complete: file, line, column and key where they are known."""
