"""Keys of PostgREST's interface; the declarations are in `core.postgrest.configuration.keys`."""

from rowcall.core.config.keys import Key, flag, section, text, text_map
from rowcall.core.postgrest.configuration.keys import INTERFACE_KEYS

_P = "PostgRest:"

ROWS: tuple[Key, ...] = (
    section("PostgRest", "PostgREST's interface on tables, views and functions. Keys may have PostgREST's names too."),
    flag(_P + "Enabled", False, "Serve PostgREST's interface."),
    text(_P + "Path", "/", "Path below which it is served; endpoints and other paths of the service win over it."),
    *(text(_P + key.name, key.default, key.meaning, nullable=True, secret=key.secret) for key in INTERFACE_KEYS),
    text_map(_P + "AppSettings", {}, "Settings `app.settings.NAME` of every transaction, by NAME."),
)
