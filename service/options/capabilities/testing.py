"""Read `TestRunner`: options of `rowcall --test`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace

from rowcall.core.config import Settings
from rowcall.core.config.settings import BOOLEANS
from rowcall.core.sections.keys import JsonValue
from rowcall.core.testing.options import PreparationStep, ResponseTable, TestOptions, TestSteps
from rowcall.core.testing.request import is_table_name
from rowcall.service.startup_error import StartupError

_P = "TestRunner:"
_TABLE = "TestRunner:ResponseTempTable:"
_SPELLED = {"sql": "Sql", "sqlfile": "SqlFile", "command": "Command"}
"""Case-folded keys of what a step does, with their spelling; a step has exactly one of them."""
_OF_KINDS = (
    ("connectionname", "ConnectionName", frozenset({"sql", "sqlfile"})),
    ("workingdirectory", "WorkingDirectory", frozenset({"command"})),
)
"""Keys that apply only to some kinds of steps: case-folded key, spelling, kinds."""
COLUMNS = (
    ("Status", "int"),
    ("Body", "text"),
    ("ContentType", "text"),
    ("Headers", "jsonb"),
    ("IsSuccess", "boolean"),
)
"""Parts of a response, and the type of each column."""


def test_options(settings: Settings) -> TestOptions:
    """Return the options of the test runner. Raises ConfigError and StartupError."""
    keys = settings.read(TestSteps)
    steps = _named_steps(keys.steps)
    options = settings.read(TestOptions, table=_response_table(settings.read(ResponseTable)))
    return replace(
        options,
        parallel=options.most_parallel or os.cpu_count() or 1,
        steps=steps,
        setup=_steps(keys.setup, steps, "Setup"),
        teardown=_steps(keys.teardown, steps, "Teardown"),
        warnings=tuple(_warnings(keys)),
    )


def _response_table(table: ResponseTable) -> ResponseTable:
    """Check the options of the response table, and return a copy with `columns` set: kind, name and type of each
    column that has a name. Raises `StartupError` if a name (of the table, a column or the debug table) is invalid, the
    pattern of names has no `{n}`, two columns have the same name, or no column has a name."""
    names_by_kind = (table.columns_status, table.columns_body, table.columns_content_type, table.columns_headers)
    configured = zip(COLUMNS, (*names_by_kind, table.columns_is_success), strict=True)
    columns = tuple((kind, name, type_name) for (kind, type_name), name in configured if name)
    if not columns:
        raise StartupError(f"{_TABLE}Columns: all of them are left out")
    names = [column.casefold() for _, column, _ in columns]
    if duplicate := next((name for name in names if names.count(name) > 1), None):
        raise StartupError(f"{_TABLE}Columns: two columns are called {duplicate!r}")
    parts = (table.debug or "").split(".")
    for key, text in (
        ("Name", table.name),
        ("MultiNamePattern", table.pattern.replace("{n}", "1")),
        *(("DebugTable", part) for part in parts if table.debug),
        *((f"Columns:{kind}", text) for kind, text, _ in columns),
    ):
        if not is_table_name(text):
            raise StartupError(f"{_TABLE}{key}: {text!r} is no name made of letters, digits and _")
    if "{n}" not in table.pattern:
        raise StartupError(
            f"{_TABLE}MultiNamePattern: {table.pattern!r} has no {{n}}, and all tables would have one name"
        )
    return replace(table, columns=columns)


def _named_steps(value: JsonValue) -> dict[str, PreparationStep | None]:
    """Return the steps of `Steps` by case-folded name, None for disabled ones. An entry that does nothing is left out.

    value: the configured mapping; any other value has no steps. Raises StartupError.
    """
    steps: dict[str, PreparationStep | None] = {}
    for name, body in value.items() if isinstance(value, Mapping) else ():
        is_step, step = _step(name, body)
        if is_step:
            steps[name.casefold()] = step
    return steps


def _warnings(keys: TestSteps) -> Iterator[str]:
    named_steps = keys.steps
    bodies = [
        (f"Steps:{name}", body) for name, body in (named_steps.items() if isinstance(named_steps, Mapping) else ())
    ]
    for key, value in (("Setup", keys.setup), ("Teardown", keys.teardown)):
        items = value if isinstance(value, tuple | list) else ()
        bodies += [(f"{key}[{number}]", body) for number, body in enumerate(items, 1)]
    for place, body in bodies:
        texts = _texts(body)
        if texts and not _kinds(texts):
            yield f"{_P}{place} does nothing: it has none of Sql, SqlFile and Command"
        for key, spelled, owners in _OF_KINDS:
            if key in texts and _kinds(texts) and owners.isdisjoint(texts):
                yield f"{_P}{place}: {spelled} has no effect with {_SPELLED[_kinds(texts)[0]]}"


def _steps(value: JsonValue, named: Mapping[str, PreparationStep | None], key: str) -> tuple[PreparationStep, ...]:
    """Return the steps of a list, whose items are names of steps or steps themselves; disabled ones are left out.

    value: the configured list; any other value has no steps. named: the steps of `Steps`, as `_named_steps` returns
    them. key: of the list, for messages. Raises StartupError for an unknown name.
    """
    result: list[PreparationStep] = []
    for number, item in enumerate(value if isinstance(value, tuple | list) else (), 1):
        if isinstance(item, Mapping):
            _, step = _step(f"{key}[{number}]", item)
        elif not item:
            continue
        elif str(item).casefold() in named:
            step = named[str(item).casefold()]
        else:
            names = ", ".join(named) or "none that does something"
            raise StartupError(f"{_P}{key} names the step {item!r}, but {_P}Steps has {names}")
        result += [step] if step is not None else []
    return tuple(result)


def _texts(body: JsonValue) -> dict[str, str]:
    """Return the non-empty values of a step by case-folded key."""
    items = body.items() if isinstance(body, Mapping) else ()
    return {key.casefold(): str(text) for key, text in items if text is not None and str(text).strip()}


def _kinds(texts: Mapping[str, str]) -> list[str]:
    return [key for key in _SPELLED if key in texts]


def _step(name: str, body: JsonValue) -> tuple[bool, PreparationStep | None]:
    """Return whether `body` is a step (it has Sql, SqlFile or Command), and the step; None in place of a step that is
    disabled, and if `body` is not a step.

    name: of the step, also for messages. Raises `StartupError` if it has several of these keys, or Enabled is not a
    boolean.
    """
    texts = _texts(body)
    what = _kinds(texts)
    if not what:
        return False, None
    if len(what) > 1:
        spelled = " and ".join(_SPELLED[key] for key in what)
        raise StartupError(f"{_P}Steps: {name} has {spelled}; a step is one of Sql, SqlFile and Command")
    enabled = BOOLEANS.get(texts.get("enabled", "true").strip().casefold())
    if enabled is None:
        raise StartupError(f"{_P}Steps: {name}: Enabled is {texts['enabled']!r}, which is neither true nor false")
    step = PreparationStep(
        name,
        texts.get("sql"),
        texts.get("sqlfile"),
        texts.get("command"),
        texts.get("workingdirectory"),
        texts.get("connectionname"),
    )
    return True, step if enabled else None
