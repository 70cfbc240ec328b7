"""The error of a failed start. `service.cli` prints it and ends with exit code 1."""

from __future__ import annotations


class StartupError(Exception):
    """The service cannot start. The message says why and what to do about it; it never contains a password."""


START_AGAIN = -1
"""Used instead of an exit code: the configuration has changed, so the service starts again."""
