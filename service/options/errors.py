"""Read error policies and retry strategies (execution-11 to execution-14, errors-6 to errors-13).

An unusable entry is skipped with a warning; an invalid number prevents the start.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping

from rowcall.core.config import Settings
from rowcall.core.config.sections.errors import (
    CommandRetryOptions,
    ErrorCodeKeys,
    ErrorHandlingOptions,
    ErrorPolicyKeys,
    RetryStrategyKeys,
)
from rowcall.core.errors.error_policy import Disclosure, ErrorMapping, ErrorPolicies, ErrorPolicy
from rowcall.core.errors.retry import DELAYS, RETRYABLE, RetryStrategies, RetryStrategy
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall.client")

_ERRORS = "ErrorHandlingOptions"
_RETRY = "CommandRetryOptions"
_DEFAULT = "default"
"""Name of the built-in retry strategy."""


def error_policies(settings: Settings) -> ErrorPolicies:
    """Return the error policies. A configured list replaces the built-in list completely. Raises `StartupError` for an
    invalid status.
    """
    options = settings.read(ErrorHandlingOptions)
    keys = options.timeout
    timeout = ErrorMapping(keys.status, keys.title, keys.details, keys.type)
    disclosure = Disclosure(options.include_raised_details, options.include_constraint_names)
    named = {name: ErrorPolicy(codes, timeout, disclosure) for name, codes in _policies(settings)}
    if not named:
        named = {"Default": ErrorPolicy(timeout=timeout, disclosure=disclosure)}
    if options.default_policy not in named:
        log.warning(
            "%s:DefaultErrorCodePolicy is %r, which is none of the policies %s: endpoints that name no policy map no "
            "SQLSTATE",
            _ERRORS,
            options.default_policy,
            ", ".join(named),
        )
    return ErrorPolicies(named, options.default_policy, timeout, disclosure)


def _policies(settings: Settings) -> Iterator[tuple[str, Mapping[str, ErrorMapping]]]:
    for number in settings.names_of(ErrorPolicyKeys):
        name = settings.read(ErrorPolicyKeys, number).name
        mappings = dict(_mappings(settings, number))
        if name and mappings:
            yield name, mappings
        else:
            missing = "a SQLSTATE with a StatusCode" if name else "a Name"
            log.warning("%s:ErrorCodePolicies:%s is skipped: it has not %s", _ERRORS, number, missing)


def _mappings(settings: Settings, number: str) -> Iterator[tuple[str, ErrorMapping]]:
    for code in settings.names_of(ErrorCodeKeys, number):
        keys = settings.read(ErrorCodeKeys, number, code)
        if keys.status is None:
            log.warning("%s:ErrorCodePolicies: %s is skipped, as it has no StatusCode; add one", _ERRORS, code)
        elif not 200 <= keys.status <= 599:
            status = str(keys.status)
            raise StartupError(f"{_ERRORS}: StatusCode of {code} is not a status from 200 to 599: {status!r}")
        else:
            yield code.upper(), ErrorMapping(keys.status, keys.title, keys.details, keys.type)


def retry_strategies(settings: Settings) -> RetryStrategies:
    """Return the built-in strategy and the configured ones; a configured `default`, in any case, replaces the built-in
    one. There are none if retries are switched off. Raises `StartupError` for an invalid delay.
    """
    options = settings.read_enabled(CommandRetryOptions)
    if options is None:
        return RetryStrategies()
    configured = {name: _strategy(name, settings) for name in settings.names_of(RetryStrategyKeys)}
    configured_default = next((name for name in configured if name.casefold() == _DEFAULT), None)
    built_in = RetryStrategy() if configured_default is None else configured[configured_default]
    named = {_DEFAULT: built_in, **configured}
    default = options.default_strategy
    if default and default not in named:
        log.warning(
            "%s:DefaultStrategy is %r, which is none of the strategies %s: commands of endpoints that name none are "
            "not retried",
            _RETRY,
            default,
            ", ".join(named),
        )
    return RetryStrategies(named, named.get(default or ""))


def _strategy(name: str, settings: Settings) -> RetryStrategy:
    """Return a configured strategy. A missing list has the built-in value; an empty list stays empty. Raises
    `StartupError` for a delay of a day or more.
    """
    keys = settings.read(RetryStrategyKeys, name)
    for delay in keys.delays or ():
        if delay >= 86_400:
            text = f"{delay:.15g}"
            raise StartupError(f"{_RETRY}:Strategies:{name}:RetrySequenceSeconds: {text!r} is not a number of seconds")
    return RetryStrategy(
        DELAYS if keys.delays is None else keys.delays,
        frozenset(code.upper() for code in (RETRYABLE if keys.codes is None else keys.codes)),
    )
