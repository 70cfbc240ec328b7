"""Keys of PostgREST's interface; the declarations are in `core.postgrest.configuration.keys`."""

from rowcall.core.config.keys import Key, choice, flag, integer, interval, section, text, text_map
from rowcall.core.postgrest.configuration.keys import INTERFACE_KEYS, ConfigurationKey

_P = "PostgRest:"


def _row(key: ConfigurationKey) -> Key:
    path = _P + key.name
    if key.is_flag:
        return flag(path, key.default == "true", key.meaning)
    if key.is_number:
        return integer(path, None if key.default is None else int(key.default), key.meaning)
    if key.choices:
        return choice(path, " ".join(key.choices), key.default, key.meaning)
    return text(path, key.default, key.meaning, nullable=True, secret=key.secret)


ROWS: tuple[Key, ...] = (
    section("PostgRest", "PostgREST's interface on tables, views and functions. Keys may have PostgREST's names too."),
    flag(_P + "Enabled", False, "Serve PostgREST's interface."),
    text(_P + "Path", "/", "Path below which it is served; endpoints and other paths of the service win over it."),
    text(_P + "RateLimiterPolicy", None, "Rate limit of all requests below the path."),
    interval(
        _P + "AnonymousCache",
        None,
        "Lifetime of cached results of reads by the anonymous role, for all of its requests. null: none is cached.",
    ),
    *map(_row, INTERFACE_KEYS),
    text_map(_P + "AppSettings", {}, "Settings `app.settings.NAME` of every transaction, by NAME.", secret=True),
)
