"""Read `TestRunner`: options of `rowcall --test`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rowcall.core.config import Settings
from rowcall.core.config.settings import BOOLEANS
from rowcall.core.sections.keys import JsonValue
from rowcall.core.testing.header import words
from rowcall.core.testing.request import is_table_name
from rowcall.core.text.interval import parse_interval
from rowcall.service.startup_error import StartupError

_P = "TestRunner:"
_TABLE = "TestRunner:ResponseTempTable:"
DEFAULT_TIMEOUT = 30.0
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


@dataclass(frozen=True, slots=True)
class PreparationStep:
    """A step before or after the tests: exactly one of `sql`, `sql_file` and `command`."""

    name: str
    sql: str | None = None
    sql_file: str | None = None
    command: str | None = None
    folder: str | None = None
    connection: str | None = None


@dataclass(frozen=True, slots=True)
class ResponseTable:
    name: str = "_response"
    pattern: str = "_response_{n}"
    debug: str | None = None
    columns: tuple[tuple[str, str, str], ...] = ()
    """Part of the response, name of the column, type."""


@dataclass(frozen=True, slots=True)
class TestOptions:
    __test__ = False

    pattern: str = ""
    filter: str = ""
    tags: frozenset[str] = frozenset()
    unwanted_tags: frozenset[str] = frozenset()
    parallel: int = 1
    fail_fast: bool = False
    timeout: float = DEFAULT_TIMEOUT
    """Timeout of one file with its setup in seconds; 0: no limit."""
    junit: str | None = None
    tap: str | None = None
    lcov: str | None = None
    cobertura: str | None = None
    keep: bool = False
    detailed: bool = False
    allow_empty: bool = False
    coverage: bool | None = None
    threshold: int | None = None
    channel: str = "rowcall.test"
    failed_first: str | None = None
    isolation: str = "none"
    """Value of `Isolation` in lower case."""
    table: ResponseTable = ResponseTable()
    steps: Mapping[str, PreparationStep | None] = field(default_factory=dict)
    """Named steps by case-folded name; None: a disabled step."""
    setup: tuple[PreparationStep, ...] = ()
    teardown: tuple[PreparationStep, ...] = ()
    warnings: tuple[str, ...] = ()
    """Messages about settings without effect."""

    @property
    def narrowed(self) -> bool:
        """Whether a filter or tags exclude files."""
        return bool(self.filter or self.tags or self.unwanted_tags)


def test_options(settings: Settings) -> TestOptions:
    """Return the options of the test runner. Raises ConfigError and StartupError."""
    steps = _named_steps(settings.value(_P + "Steps"))
    threshold = settings.integer_or_none(_P + "CoverageThreshold")
    if threshold is not None and threshold > 100:
        raise StartupError(f"{_P}CoverageThreshold: {threshold} is more than 100 percent")
    return TestOptions(
        pattern=(settings.text_or_none(_P + "FilePattern") or "").strip().replace("\\", "/"),
        filter=(settings.text_or_none(_P + "Filter") or "").strip(),
        tags=_tags(settings, "Tag"),
        unwanted_tags=_tags(settings, "ExcludeTag"),
        parallel=settings.integer(_P + "MaxParallelism") or os.cpu_count() or 1,
        fail_fast=settings.flag(_P + "FailFast"),
        timeout=_timeout(settings),
        junit=settings.text_or_none(_P + "JUnitOutput") or None,
        lcov=settings.text_or_none(_P + "LcovOutput") or None,
        cobertura=settings.text_or_none(_P + "CoberturaOutput") or None,
        tap=settings.text_or_none(_P + "TapOutput") or None,
        keep=settings.flag(_P + "Keep"),
        detailed=settings.flag(_P + "DetailedReport"),
        allow_empty=settings.flag(_P + "AllowEmpty"),
        coverage=settings.flag_or_none(_P + "Coverage"),
        threshold=threshold,
        channel=settings.text(_P + "LoggerName"),
        failed_first=settings.text_or_none(_P + "FailedFirst") or None,
        isolation=settings.choice(_P + "Isolation").lower(),
        table=_response_table(settings),
        steps=steps,
        setup=_steps(settings.value(_P + "Setup"), steps, "Setup"),
        teardown=_steps(settings.value(_P + "Teardown"), steps, "Teardown"),
        warnings=tuple(_warnings(settings)),
    )


def _tags(settings: Settings, key: str) -> frozenset[str]:
    return frozenset(word.lower() for word in words(settings.text_or_none(_P + key) or ""))


def _timeout(settings: Settings) -> float:
    """Return the timeout of a file in seconds.

    Invalid text means the default; zero and negative durations set no limit (testing-2, testing-3).
    """
    text = str(settings.value(_P + "PerTestTimeout") or "").strip()
    if text.startswith("-"):
        return 0.0
    seconds = parse_interval(text)
    return DEFAULT_TIMEOUT if seconds is None else seconds


def _response_table(settings: Settings) -> ResponseTable:
    name, pattern = settings.text(_TABLE + "Name"), settings.text(_TABLE + "MultiNamePattern")
    debug = settings.text_or_none(_TABLE + "DebugTable") or None
    configured = (
        (kind, settings.text_or_none(f"{_TABLE}Columns:{kind}") or "", type_name) for kind, type_name in COLUMNS
    )
    columns = tuple(column for column in configured if column[1])
    if not columns:
        raise StartupError(f"{_TABLE}Columns: all of them are left out")
    names = [column.casefold() for _, column, _ in columns]
    if duplicate := next((name for name in names if names.count(name) > 1), None):
        raise StartupError(f"{_TABLE}Columns: two columns are called {duplicate!r}")
    parts = (debug or "").split(".")
    for key, text in (
        ("Name", name),
        ("MultiNamePattern", pattern.replace("{n}", "1")),
        *(("DebugTable", part) for part in parts if debug),
        *((f"Columns:{kind}", text) for kind, text, _ in columns),
    ):
        if not is_table_name(text):
            raise StartupError(f"{_TABLE}{key}: {text!r} is no name made of letters, digits and _")
    if "{n}" not in pattern:
        raise StartupError(f"{_TABLE}MultiNamePattern: {pattern!r} has no {{n}}, and all tables would have one name")
    return ResponseTable(name, pattern, debug, columns)


def _named_steps(value: JsonValue) -> dict[str, PreparationStep | None]:
    steps: dict[str, PreparationStep | None] = {}
    for name, body in value.items() if isinstance(value, Mapping) else ():
        is_step, step = _step(name, body)
        if is_step:
            steps[name.casefold()] = step
    return steps


def _warnings(settings: Settings) -> Iterator[str]:
    named_steps = settings.value(_P + "Steps")
    bodies = [
        (f"Steps:{name}", body) for name, body in (named_steps.items() if isinstance(named_steps, Mapping) else ())
    ]
    for key in ("Setup", "Teardown"):
        value = settings.value(_P + key)
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
    """Return the steps of a list, whose items are names of steps or steps themselves; disabled ones are left out."""
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
    """Return whether `body` is a step, and the step itself, or None if it is disabled. Raises StartupError."""
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
