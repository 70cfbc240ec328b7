"""Log messages once the service listens: number of endpoints, configuration warnings, and `StartupMessage`."""

from __future__ import annotations

import importlib.metadata
import logging
import os
from collections import Counter
from collections.abc import Sequence

from rowcall.core.catalogue.catalog import Routine, RoutineKind
from rowcall.core.config import Settings
from rowcall.core.config.sections.application import Application, ApplicationNames
from rowcall.core.config.sections.data_protection import DataProtection
from rowcall.core.operations.audit import openness
from rowcall.core.postgrest.catalogue import PostgRestCatalogue
from rowcall.core.tables.routines import TableOperation
from rowcall.service.snapshot.schema_snapshot import SchemaSnapshot

log = logging.getLogger("rowcall")
client = logging.getLogger("rowcall.client")


def announce(settings: Settings, snapshot: SchemaSnapshot, urls: Sequence[str], workers: int, seconds: float) -> None:
    """Log `16 endpoints of 14 functions and 2 procedures, 2 workers`, warnings, and the startup message, unless it is
    empty. workers: their number. seconds: duration of the start.
    """
    log.info("%s, %s", _endpoint_counts(snapshot), _format_count(workers, "worker"))
    report_left_out(snapshot)
    if snapshot.postgrest is not None:
        log.info("PostgREST's interface: %s", _interface(snapshot.postgrest))
        report_hidden(snapshot)
    elif not snapshot.endpoints:
        log.warning("There is nothing to serve. Looked at: %s. %s", "; ".join(snapshot.looked_at), _BEGIN)
    _report_short_lived_keys(settings, snapshot)
    exposed = openness(snapshot.endpoints)
    if exposed.count:
        log.info("%s; rowcall --audit lists details", exposed.sentence)
    _report_closed_to_all(settings, snapshot)
    _report_undelivered(settings, snapshot)
    message = settings.read(Application).startup_message
    if message:
        client.info("%s", startup_message(message, settings, urls, seconds))


def report_hidden(snapshot: SchemaSnapshot) -> None:
    """Warn about relations and functions whose path in PostgREST's interface belongs to an endpoint."""
    hidden = find_hidden_objects(snapshot)
    if hidden:
        pairs = [f"{endpoint} has the path of {name}" for endpoint, name in sorted(hidden.items())]
        others = f", and {len(pairs) - _SHOWN} more" if len(pairs) > _SHOWN else ""
        log.warning(
            "Endpoints win over PostgREST's interface: %s%s; PostgRest:Path can be another path",
            ", ".join(pairs[:_SHOWN]),
            others,
        )


def find_hidden_objects(snapshot: SchemaSnapshot) -> dict[str, str]:
    """Return the objects of PostgREST's interface that endpoints hide, as `schema.name`, by the name of the endpoint
    that has their path.
    """
    catalogue = snapshot.postgrest
    if catalogue is None:
        return {}
    objects = ((endpoint.name, catalogue.object_at(endpoint.path)) for endpoint in snapshot.endpoints)
    return {endpoint: name for endpoint, name in objects if name is not None}


def _interface(catalogue: PostgRestCatalogue) -> str:
    """Return a text with the numbers of relations and functions, and the exposed schemas."""
    options, schema = catalogue.options, catalogue.schema
    relations = sum(namespace in options.schemas for namespace, _ in schema.relations)
    functions = sum(map(len, schema.functions.values()))
    where = ", ".join(options.schemas)
    objects = f"{_format_count(relations, 'relation')} and {_format_count(functions, 'function')}"
    return f"{objects} of {where} below {options.path}"


_WAYS_IN = ("Auth:CookieAuth", "Auth:BearerTokenAuth", "Auth:JwtAuth", "Auth:ApiKey:Enabled")


def _report_closed_to_all(settings: Settings, snapshot: SchemaSnapshot) -> None:
    """Warn about endpoints that require a signed-in user if no way to sign in is configured."""
    if any(settings.value_of(key) for key in (*_WAYS_IN, "Service:AuthenticationOptions:BasicAuth:Enabled")):
        return
    closed = [
        item.name
        for item in snapshot.endpoints
        if not (item.access.anonymous or item.options.login or item.options.internal or item.access.basic is not None)
    ]
    if closed:
        log.warning(
            "%s for signed-in callers, and no way to sign in is on (%s): %s answers 401 to all callers until "
            "allow_anonymous in its comment or Service:RequiresAuthorization=false opens it",
            f"{_format_count(len(closed), 'endpoint')} {'is' if len(closed) == 1 else 'are'}",
            ", ".join(_WAYS_IN),
            closed[0],
        )


def _report_undelivered(settings: Settings, snapshot: SchemaSnapshot) -> None:
    """If endpoints publish messages (annotation `publishes`) and this service does not deliver any, log that another
    service has to."""
    publishing = [item.name for item in snapshot.endpoints if item.options.publishing is not None]
    if publishing and not settings.flag("Webhooks:Enabled"):
        log.info(
            "%s: this service publishes messages and does not deliver them; Webhooks:Enabled=true here, or in another "
            "service of the same database, does",
            publishing[0],
        )


_BEGIN = (
    "A comment makes an endpoint: comment on function my_function is 'HTTP GET'; docs/endpoints.md goes on from there"
)


def report_left_out(snapshot: SchemaSnapshot) -> None:
    """Log on one line which objects were left out; the reasons have been logged before, each once."""
    if snapshot.left_out:
        names = sorted({item.object for item in snapshot.left_out})
        listing = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
        log.warning("%d left out: %s; rowcall --endpoints lists why", snapshot.left_out_count, listing)


_SHOWN = 10
"""Maximum number of names in a message."""


def _report_short_lived_keys(settings: Settings, snapshot: SchemaSnapshot) -> None:
    """Warn if endpoints encrypt values although encryption is off, or its keys end with the process."""
    encryptions = ((item.name, item.options.encryption) for item in snapshot.endpoints)
    encrypting = [
        name for name, encryption in encryptions if encryption and (encryption.all_parameters or encryption.parameters)
    ]
    keys = settings.read(DataProtection)
    if encrypting and not keys.enabled:
        log.warning(
            "DataProtection:Enabled is false: encrypt and decrypt do nothing, and %s stores values as they are sent",
            encrypting[0],
        )
    elif encrypting and keys.storage == "Default":
        log.warning(
            "%s%s values with keys that end with this process: they cannot be decrypted after a restart. "
            "DataProtection:Storage=FileSystem or Database keeps the keys",
            encrypting[0],
            " encrypts"
            if len(encrypting) == 1
            else f" and {_format_count(len(encrypting) - 1, 'other endpoint')} encrypt",
        )


def startup_message(message: str, settings: Settings, urls: Sequence[str], seconds: float) -> str:
    """Return `message` with its placeholders replaced; unknown ones stay (logging-6). urls: of the listeners. seconds:
    duration of the start.
    """
    names = settings.read(ApplicationNames)
    values = {
        "{time}": format_duration(seconds),
        "{urls}": ";".join(urls),
        "{version}": importlib.metadata.version("rowcall"),
        "{environment}": names.environment,
        "{application}": names.application or os.path.basename(os.getcwd()),
    }
    for placeholder, value in values.items():
        message = message.replace(placeholder, value)
    return message


def format_duration(seconds: float) -> str:
    """Return seconds as `hh:mm:ss.fffffff`."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    return f"{hours:02}:{minutes:02}:{rest:010.7f}"


def _endpoint_counts(snapshot: SchemaSnapshot) -> str:
    """Return a text such as `16 endpoints of 14 functions and 2 procedures`."""
    routines = (endpoint.routine for endpoint in snapshot.endpoints)
    kinds = Counter(kind.name.lower() for kind, *_ in set(map(_object, routines)))
    objects = [_format_count(kinds[name], name) for kind in RoutineKind if (name := kind.name.lower()) in kinds]
    several = " and ".join(filter(None, (", ".join(objects[:-1]), objects[-1] if objects else "")))
    return _format_count(len(snapshot.endpoints), "endpoint") + (f" of {several}" if several else "")


def _object(routine: Routine) -> tuple[RoutineKind, str, str, str]:
    """Return a key of the database object: a table is one object, whatever number of operations is served; overloads of
    a name are several.
    """
    is_table = isinstance(routine.source, TableOperation)
    return routine.kind, routine.schema, routine.name, "" if is_table else routine.identity


def _format_count(count: int, word: str) -> str:
    """Return a text such as `1 worker` or `2 workers`."""
    return f"{count} {word}" + ("" if count == 1 else "s")
