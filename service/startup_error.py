"""Why the service could not start. `service.cli` prints it and ends with exit code 1."""

from __future__ import annotations


class StartupError(Exception):
    """The message tells the user what is wrong and what to do about it; it never holds a password."""


START_AGAIN = -1
"""In place of an exit code: the configuration has changed."""
