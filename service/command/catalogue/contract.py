"""`--contract FILE`: write the contract that clients rely on to a file; with `--check`, report how it has changed
since."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from rowcall.core.building.service import ServiceOptions
from rowcall.core.codegen.selection import NoPlaceError
from rowcall.core.config import Settings
from rowcall.core.documents.contract import (
    Contract,
    ContractError,
    Functions,
    contract_from,
    contract_of,
    contract_text,
)
from rowcall.core.documents.contract_changes import Severity, changes
from rowcall.core.documents.wire_types import as_wire_types
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.service.codegen.writing import clients_of, replace_file
from rowcall.service.command.catalogue.snapshot import endpoints_of
from rowcall.service.command.configuration_files import load
from rowcall.service.command.serve import require_readable
from rowcall.service.command.switches import Arguments
from rowcall.service.options.capabilities.client_code import client_code_options, dart_options, python_options
from rowcall.service.options.tables import export_options, table_formats
from rowcall.service.startup_error import StartupError

EXIT_CODES = {Severity.COMPATIBLE: 0, Severity.DOUBTFUL: 3, Severity.BREAKING: 4}
"""Exit codes of `--check`. 1 is used for read errors, 2 for unknown switches."""


def contract(arguments: Arguments) -> int:
    """Write the contract and return 0; with `--check`, print its changes and return the code of the most severe one
    (`EXIT_CODES`). Raises ConfigError, StartupError."""
    settings = load(arguments).settings
    require_readable(settings)
    logging.getLogger("rowcall").addHandler(logging.NullHandler())
    logging.getLogger("rowcall").propagate = False
    path = Path(arguments.given["--contract"][0])
    if arguments.has("--check"):
        return _check(_read(path), _current_contract(arguments, settings), path)
    return _write(_current_contract(arguments, settings), path)


def _current_contract(arguments: Arguments, settings: Settings) -> Contract:
    """Read the database, and return the contract of its endpoints. Raises ConfigError, StartupError."""
    level = settings.read(ServiceOptions).event_level
    with endpoints_of(settings, demo=arguments.has("--demo")) as reading:
        camel = settings.read(ServiceOptions).camel_case_names
        safe, resolve = reading.options.safe_numbers, reading.options.resolve_nested
        endpoints, types_of = as_wire_types(
            reading.snapshot.endpoints, reading.snapshot.types_of, safe_numbers=safe, resolve_nested=resolve
        )
        exact = settings.read(ServiceOptions).exact_types
        functions = _functions(endpoints, settings)
        return contract_of(
            endpoints,
            types_of,
            camel=camel,
            level=level,
            tables=table_formats(settings),
            exports=export_options(settings),
            exact=exact,
            functions=functions,
        )


def _functions(endpoints: Sequence[Endpoint], settings: Settings) -> Functions:
    """Return the name of the function of each endpoint in each enabled generated client: names by language, by `id` of
    the endpoint. A client with an invalid path (`NoPlaceError`) is left out. endpoints: with the types that clients
    see."""
    functions: Functions = {}
    options = client_code_options(settings, ()), dart_options(settings, ()), python_options(settings, ())
    for client in clients_of(*options):
        # JavaScript is the same client without types.
        language = "TypeScript" if client.language == "JavaScript" else client.language
        try:
            names = list(client.names(endpoints))
        except NoPlaceError:
            # The start reports it and writes nothing.
            continue
        for endpoint, name in names:
            functions.setdefault(id(endpoint), {})[language] = name
    return functions


def _read(path: Path) -> Contract:
    """Return the contract in a file. Raises `StartupError`."""
    try:
        return contract_from(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise StartupError(f"{path} cannot be read: {error}") from None
    except ContractError as error:
        raise StartupError(f"{path} {error}") from None


def _write(now: Contract, path: Path) -> int:
    """Write the contract to the file if it has changed, print whether it was written, and return the exit code 0.
    Raises `StartupError`.
    """
    text = contract_text(now)
    try:
        unchanged = path.exists() and path.read_text(encoding="utf-8") == text
        if not unchanged:
            replace_file(path, text)
    except (OSError, UnicodeDecodeError) as error:
        raise StartupError(f"{path} cannot be written: {error}") from None
    print(f"{path} {'is unchanged' if unchanged else 'is written'}: {len(now['endpoints'])} endpoints")
    return 0


def _check(before: Contract, now: Contract, path: Path) -> int:
    """Print the changes, and return the exit code for the most severe one (`EXIT_CODES`). path: of the file with
    `before`, for the output.
    """
    differences = changes(before, now)
    for change in differences:
        print(change)
    worst = max((change.severity for change in differences), default=Severity.COMPATIBLE)
    summary = ", ".join(
        f"{count} {severity.name.lower()}"
        for severity in reversed(Severity)
        if (count := sum(change.severity is severity for change in differences))
    )
    print(f"{path}: {summary or 'nothing has changed'}")
    return EXIT_CODES[worst]
