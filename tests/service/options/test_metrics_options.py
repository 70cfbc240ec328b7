"""Options of the metrics listener: its address, and who may read it."""

from __future__ import annotations

import pytest

from rowcall.core.config import Settings, assemble
from rowcall.core.config.tree import Section
from rowcall.core.sections.errors import ConfigError
from rowcall.service.options.server.metrics import admin_options, metrics_options
from rowcall.service.startup_error import StartupError

TOKEN = "0123456789abcdef"


def settings(**keys: str) -> Settings:
    return assemble(Section(), [(key.replace("__", ":"), value) for key, value in keys.items()], {}).settings


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"Metrics__Enabled": "true"}, "Metrics:Enabled needs an address to be read at: Admin:Url"),
        ({"Admin__Url": "http://0.0.0.0:0"}, "give it Admin:BearerToken, bind it to 127.0.0.1"),
        ({"Admin__Url": "http://[::]:1"}, "give it Admin:BearerToken, bind it to 127.0.0.1"),
        ({"Admin__Url": "http://operators.example:1"}, "give it Admin:BearerToken, bind it to 127.0.0.1"),
        ({"Admin__Url": "http://127.0.0.1:0", "Admin__BearerToken": "short"}, "shorter than 16 characters"),
        ({"Admin__Url": "https://127.0.0.1:0"}, "the admin listener speaks http"),
        (
            {"Console__Enabled": "true", "Console__Url": "http://0.0.0.0:0"},
            "Console:Url: http://0.0.0.0:0 can be reached",
        ),
        ({"Admin__Url": "http://unix:relative"}, "a Unix socket is written"),
        ({"Admin__Url": "http://[::1]:0", "Metrics__Enabled": "true", "Metrics__Path": "metrics"}, "no path such as"),
    ],
)
def test_open_or_useless_metrics_settings_are_refused(keys: dict[str, str], message: str) -> None:
    with pytest.raises((ConfigError, StartupError), match=message.replace("[", r"\[")):
        (admin_options(settings(**keys)), metrics_options(settings(**keys)))


@pytest.mark.parametrize(
    ("keys", "warned"),
    [
        ({"Admin__Url": "http://127.0.0.1:0"}, False),
        ({"Admin__Url": "http://[::1]:0"}, False),
        ({"Admin__Url": "http://localhost:0"}, False),
        ({"Admin__Url": "http://unix:/run/admin.sock"}, False),
        ({"Admin__Url": "http://*:9464", "Admin__BearerToken": TOKEN}, False),
        ({"Admin__Url": "http://*:9464", "Admin__AllowAnonymous": "true"}, True),
    ],
)
def test_permitted_admin_addresses_warn_if_open(
    keys: dict[str, str], warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    assert admin_options(settings(**keys)) is not None
    assert ("is open to every client that can reach it" in caplog.text) == warned


def test_metrics_are_off_by_default() -> None:
    assert (admin_options(settings()), metrics_options(settings())) == (None, None)


def test_the_console_listens_on_loopback_by_default() -> None:
    options = admin_options(settings(Console__Enabled="true"))
    assert options is not None
    assert options.address.url(options.address.port) == "http://127.0.0.1:9465"
    assert options.console is not None
    assert options.metrics_path is None
    assert metrics_options(settings(Console__Enabled="true")) is not None


def test_the_console_uses_the_admin_listener() -> None:
    options = admin_options(settings(Console__Enabled="true", Admin__Url="http://127.0.0.1:1"))
    assert options is not None
    assert options.address.port == 1
    assert options.console is not None
