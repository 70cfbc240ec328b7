"""Read error policies and retry strategies (execution-11 to execution-14, errors-6 to errors-13).

An unusable entry is skipped with a warning; an invalid number prevents the start.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rowcall.core.config import Settings
from rowcall.core.errors.error_policy import Disclosure, ErrorMapping, ErrorPolicies, ErrorPolicy
from rowcall.core.errors.retry import RetryStrategies, RetryStrategy
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall.client")

_ERRORS = "ErrorHandlingOptions"
_TIMEOUT = f"{_ERRORS}:TimeoutErrorMapping"
_RETRY = "CommandRetryOptions"


def error_policies(settings: Settings) -> ErrorPolicies:
    """Return the error policies. A configured list replaces the built-in list completely."""
    timeout = ErrorMapping(
        settings.integer(_TIMEOUT + ":StatusCode"),
        settings.text_or_none(_TIMEOUT + ":Title"),
        settings.text_or_none(_TIMEOUT + ":Details"),
        settings.text_or_none(_TIMEOUT + ":Type"),
    )
    disclosure = Disclosure(
        raised_details=settings.flag(_ERRORS + ":IncludeRaisedDetails"),
        names=settings.flag(_ERRORS + ":IncludeConstraintNames"),
    )
    entries = _list(settings.value(f"{_ERRORS}:ErrorCodePolicies"))
    named = {name: ErrorPolicy(codes, timeout, disclosure) for name, codes in _policies(entries)}
    default = settings.text(f"{_ERRORS}:DefaultErrorCodePolicy")
    if not named:
        named = {"Default": ErrorPolicy(timeout=timeout, disclosure=disclosure)}
    if default not in named:
        log.warning(
            "%s:DefaultErrorCodePolicy is %r, which is none of the policies %s: endpoints that name no policy map no "
            "SQLSTATE",
            _ERRORS,
            default,
            ", ".join(named),
        )
    return ErrorPolicies(named, default, timeout, disclosure)


def _policies(entries: Sequence[Any]) -> Iterator[tuple[str, Mapping[str, ErrorMapping]]]:
    for number, entry in enumerate(entries):
        if not isinstance(entry, Mapping):
            continue
        name = _text(entry, "Name")
        codes = _get(entry, "ErrorCodes")
        mappings = dict(_mappings(codes)) if isinstance(codes, Mapping) else {}
        if name and mappings:
            yield name, mappings
        else:
            missing = "a SQLSTATE with a StatusCode" if name else "a Name"
            log.warning("%s:ErrorCodePolicies:%d is skipped: it has not %s", _ERRORS, number, missing)


def _mappings(codes: Mapping[str, Any]) -> Iterator[tuple[str, ErrorMapping]]:
    for code, entry in codes.items():
        status = _text(entry, "StatusCode") if isinstance(entry, Mapping) else None
        if status is None:
            log.warning("%s:ErrorCodePolicies: %s is skipped, as it has no StatusCode; add one", _ERRORS, code)
            continue
        yield (
            code.upper(),
            ErrorMapping(_status(code, status), _text(entry, "Title"), _text(entry, "Details"), _text(entry, "Type")),
        )


def _status(code: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 200 <= int(text) <= 599):
        raise StartupError(f"{_ERRORS}: StatusCode of {code} is not a status from 200 to 599: {text!r}")
    return int(text)


def retry_strategies(settings: Settings) -> RetryStrategies:
    """Return the built-in strategy and the configured ones; a configured `default` replaces the built-in one. There are
    none if retries are switched off.
    """
    if not settings.flag(f"{_RETRY}:Enabled"):
        return RetryStrategies()
    named = {"default": RetryStrategy()}
    configured = settings.value(f"{_RETRY}:Strategies")
    if isinstance(configured, Mapping):
        named |= {name: _strategy(name, entry) for name, entry in configured.items() if isinstance(entry, Mapping)}
    default = settings.text_or_none(f"{_RETRY}:DefaultStrategy")
    if default and default not in named:
        log.warning(
            "%s:DefaultStrategy is %r, which is none of the strategies %s: commands of endpoints that name none are "
            "not retried",
            _RETRY,
            default,
            ", ".join(named),
        )
    return RetryStrategies(named, named.get(default or ""))


def _strategy(name: str, entry: Mapping[str, Any]) -> RetryStrategy:
    """Return a configured strategy. A missing list has the built-in value; an empty list stays empty."""
    built_in = RetryStrategy()
    delays = _get(entry, "RetrySequenceSeconds")
    codes = _get(entry, "ErrorCodes")
    return RetryStrategy(
        built_in.delays if delays is None else tuple(_delay(name, delay) for delay in _list(delays)),
        built_in.codes if codes is None else frozenset(str(code).upper() for code in _list(codes)),
    )


def _delay(name: str, text: Any) -> float:
    try:
        delay = float(text)
    except ValueError:
        delay = -1.0
    if not 0 <= delay < 86_400:
        raise StartupError(f"{_RETRY}:Strategies:{name}:RetrySequenceSeconds: {text!r} is not a number of seconds")
    return delay


def _list(value: Any) -> Sequence[Any]:
    """Return the items of an array, which the command line and the environment write as a section with numeric keys."""
    if isinstance(value, Mapping):
        return tuple(value.values())
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def _text(mapping: Mapping[str, Any], name: str) -> str | None:
    value = _get(mapping, name)
    return None if value is None or isinstance(value, Mapping | tuple) else str(value) or None


def _get(mapping: Mapping[str, Any], name: str) -> Any:
    """Return the value of a key, ignoring its case."""
    return next((value for key, value in mapping.items() if key.casefold() == name.casefold()), None)
