"""The command `rowcall`: parses the arguments and calls a module of `service.command`.

Exit codes follow command-2. Modules are imported on use, so that a switch responds at once.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence

from rowcall.service.command.switches import Arguments, parse_arguments
from rowcall.service.interpreter import drop_working_directory


def main(tokens: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0 after a graceful stop, 1 if the start failed, 2 for an unknown
    argument; other codes are those of single switches. tokens: the arguments; None: those of the process.
    """
    drop_working_directory(sys.path)
    command_line = sys.argv[1:] if tokens is None else tokens
    if not all(map(_is_text, command_line)):
        print("rowcall: an argument is not UTF-8 text", file=sys.stderr)
        return 1
    arguments = parse_arguments(command_line)
    try:
        code = _report_unknown(arguments) if arguments.unknown is not None else _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        return _discard_output()
    except KeyboardInterrupt:
        return 0
    return code


def _is_text(token: str) -> bool:
    """Return whether the argument is UTF-8. Python represents other bytes as surrogates, which no consumer accepts."""
    try:
        token.encode()
    except UnicodeEncodeError:
        return False
    return True


def _run(arguments: Arguments) -> int:
    switch = arguments.switch
    module, _, name = (switch.run if switch else "serve:serve").partition(":")
    try:
        run: Callable[[Arguments], int] = getattr(importlib.import_module(f"rowcall.service.command.{module}"), name)
        return run(arguments)
    except Exception as error:
        explanation = _explanation(error)
        if explanation is None:
            raise
        print(f"rowcall: {explanation}", file=sys.stderr)
        return 1


def _explanation(error: Exception) -> str | None:
    """Return the message of an error that the user can resolve; None for other errors, which are bugs."""
    if isinstance(error, ImportError):
        return _why_no_libpq()
    from rowcall.core.sections.errors import ConfigError
    from rowcall.service.startup_error import StartupError

    return str(error) if isinstance(error, ConfigError | StartupError) else None


def _why_no_libpq() -> str | None:
    """Return why libpq cannot be loaded, or None if it can be. Any module may fail first because of a missing libpq,
    but only the error of this import names the reason and the remedy.
    """
    try:
        importlib.import_module("rowcall.ext.base.libpq")
    except ImportError as error:
        return str(error)
    return None


def _report_unknown(arguments: Arguments) -> int:
    """Print which argument is unknown, and return 2, the exit code of other commands for it."""
    from rowcall.service.command.about import banner

    banner()
    hint = f"{arguments.hint} " if arguments.hint else ""
    print(f"Unknown parameter {arguments.unknown}\n\n{hint}Try: rowcall --help", file=sys.stderr)
    return 2


def _discard_output() -> int:
    """Discard further output after the reader has closed the pipe, as in `rowcall --config | head`, and return 0.

    Otherwise, Python reports an error when it flushes stdout at its end.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
