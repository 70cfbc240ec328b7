"""The four written forms of a connection string (configuration-12 to configuration-22)."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict

from rowcall.core.config import Settings, assemble, load_files
from rowcall.core.sections.errors import ConfigError
from rowcall.service.options.connection_string import (
    ConnectionInfo,
    EmbeddedServerPath,
    connection_for,
    main_connection_name,
    parse_connection_string,
)
from rowcall.service.startup_error import StartupError
from tests.harness.database import Database


def parameters(text: str) -> dict[str, str]:
    parsed = parse_connection_string(text)
    assert isinstance(parsed, ConnectionInfo)
    return dict(parsed.parameters)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "postgresql://web:p%20w@db:5433/shop?sslmode=require",
            {"user": "web", "password": "p w", "host": "db", "port": "5433", "dbname": "shop", "sslmode": "require"},
        ),
        ("postgres:///shop?host=/run/pg", {"dbname": "shop", "host": "/run/pg"}),
        ("host=db dbname=shop password='a;b'", {"host": "db", "dbname": "shop", "password": "a;b"}),
        (
            "Host=db;Port=5433;Database=shop;Username=web;Password=secret",
            {"host": "db", "port": "5433", "dbname": "shop", "user": "web", "password": "secret"},
        ),
        ("server=db; User Id = web ;PWD=x;", {"host": "db", "user": "web", "password": "x"}),
        ("Host=db;Password='a;b''c'", {"host": "db", "password": "a;b'c"}),
        ('Host=db;Password="a;b""c = d"', {"host": "db", "password": 'a;b"c = d'}),
        ("host=db;password=a=b", {"host": "db", "password": "a=b"}),
        ("Host=a:1,b;Port=2", {"host": "a,b", "port": "1,2"}),
        ("Host=a:1,b;Port=", {"host": "a,b", "port": "1,5432"}),
        ("Host=a:1,b,c;Port=2,3,4", {"host": "a,b,c", "port": "1,3,4"}),
        ("Host=[::1]:5433", {"host": "::1", "port": "5433"}),
        ("Host=::1", {"host": "::1"}),
        ("Host=/run/pg;Database=shop", {"host": "/run/pg", "dbname": "shop"}),
        ("Host=db;SSL Mode=VerifyFull", {"host": "db", "sslmode": "verify-full"}),
        ("Host=db;sslmode=verify-ca", {"host": "db", "sslmode": "verify-ca"}),
        ("Host=db;Root Certificate=/ca.pem", {"host": "db", "sslrootcert": "/ca.pem"}),
        ("Host=db;Target Session Attributes=Read-Write", {"host": "db", "target_session_attrs": "read-write"}),
        ("Host=db;Timeout=5;TCP Keepalive=true", {"host": "db", "connect_timeout": "5", "keepalives": "1"}),
        ("Host=db;Search Path=a, b;Timezone=UTC", {"host": "db", "options": r"-c search_path=a,\ b -c TimeZone=UTC"}),
        ("Host=db;Pooling=false;Max Auto Prepare=5;Multiplexing=true", {"host": "db"}),
        ("Host=db;Channel Binding=Require", {"host": "db", "channel_binding": "require"}),
        ("Host=db;Require Auth=ScramSHA256", {"host": "db", "require_auth": "scram-sha-256"}),
        ("Host=db;Load Balance Hosts=true", {"host": "db", "load_balance_hosts": "random"}),
        ("Host=db;Load Balance Hosts=False", {"host": "db", "load_balance_hosts": "disable"}),
        ("Host=db;Password=", {"host": "db"}),
        ("Host=db;Password='x user=y'", {"host": "db", "password": "x user=y"}),
        ("Host=db;Password=x y=z", {"host": "db", "password": "x y=z"}),
        ("Host=db;Options=-c client_encoding=latin1", {"host": "db", "options": "-c client_encoding=latin1"}),
        ("Host=db;;", {"host": "db"}),
        ("PostgreSQL://app@db/shop", {"host": "db", "user": "app", "dbname": "shop"}),
    ],
)
def test_a_connection_string_becomes_libpq_parameters(text: str, expected: dict[str, str]) -> None:
    assert parameters(text) == expected
    assert conninfo_to_dict(ConnectionInfo(expected).conninfo()) == expected


def test_keywords_of_the_service_are_separated_from_those_of_libpq() -> None:
    parsed = parse_connection_string("Host=db;Command Timeout=7;MaxPoolSize=20")
    assert parsed == ConnectionInfo({"host": "db"}, command_timeout=7.0, maximum_pool_size=20)


def test_a_folder_is_an_embedded_database() -> None:
    assert parse_connection_string("Embedded:./data dir") == EmbeddedServerPath(Path("data dir"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Host=db;Pasword=hunter2", "unknown keyword 'Pasword'"),
        ("Host=db;hunter2", "expected Keyword=value; at position 9"),
        ("host=db pasword=hunter2", 'invalid connection option "pasword"'),
        ("host=db password hunter2", "not a valid libpq connection string"),
        ("postgresql://u:hunter2@[::1/d", "not a valid libpq connection string"),
        ("postgresql://u:hunter2@h/d?hunter2", "not a valid libpq connection string"),
        ("postgresql://u:hunter2%zz@h/d", "not a valid libpq connection string"),
        pytest.param(
            "postgresql://u:hun ter2@h/d",
            "not a valid libpq connection string",
            marks=pytest.mark.skipif(psycopg.pq.version() < 170000, reason="libpq before 17 takes spaces as they are"),
        ),
        (
            "Host=db;SSL Mode=Sometimes",
            "SSL Mode must be one of allow, disable, prefer, require, verify-ca, verify-full",
        ),
        ("Host=db;Command Timeout=" + 400 * "9", "Command Timeout needs a whole number"),
        ("Host=db;Command Timeout=hunter2", "Command Timeout needs a whole number"),
        ("Host=db;Target Session Attributes=prefer-unknown", "Target Session Attributes must be one of any"),
        ("embedded:", "`embedded:` needs the folder"),
        ("embedded:~unknown-account/data", "`embedded:` names the home folder of a user that is not known"),
        ("Host=db;Port=hunter2", "port needs a number from 1 to 65535"),
        ("Host=a:1,b,c;Port=2,3", "Port has 2 values in the connection string, and Host has 3"),
        ("Host=db:1,dc:65536", "port needs a number from 1 to 65535"),
        ("postgresql://u:hunter2", "port needs a number from 1 to 65535"),
        ("host=db port=0", "port needs a number from 1 to 65535"),
        ("Host=db;Timeout=hunter2", "connect_timeout needs a whole number"),
        ("host=a =hunter2", 'invalid connection option ""'),
        ("host=a i=1", 'invalid connection option "i"'),
        ("host=a password hunter2", 'missing "…" after "…" in connection info string'),
        ('postgresql://u:a"hunter2%zz@h/d', 'invalid percent-encoded token: "…"'),
        ('host=a a"hunter2"b', "in connection info string"),
        (
            "postgresql+asyncpg://u:hunter2@h/d?ssl=require",
            "the scheme 'postgresql+asyncpg' is unknown: write postgresql://…",
        ),
        ("Host=db;Password=ab;hunter2=e", "no keyword follows the `;` behind the password"),
        ("host=a password=hunter2;sslmode=require", "`;` has to be in front of password=, as `;` separates pairs here"),
        ("host=hunter2 user=a;sslmode=require", "`;` has to be in front of user="),
        ("Host=hunter2 Username=a;", "`;` has to be in front of Username="),
        ("Database=shop Host=hunter2;", "`;` has to be in front of Host="),
        ("Host=hunter2 User Id=b;", "`;` has to be in front of User Id="),
        ("Host=hunter2 SSL Mode=require;Port=1", "`;` has to be in front of SSL Mode="),
        ("host=a;password=hunter2 port=1", "`;` has to be in front of port="),
        ("host=a password=ab;hunter2=e", "no keyword follows the `;` behind the password"),
        ("host=a sslpassword = ab;port=1;hunter2=e", "no keyword follows the `;` behind the password"),
        *(
            (f"{begin}u:hunter2@h/d?sslmode=require", "no keyword is in front of a `=`: write postgresql://…")
            for begin in (
                *("'postgresql://", '"postgresql://', "jdbc:postgresql://", "\ufeffpostgresql://", "postgresql_x://"),
                *("psql postgresql://", "postgresql:/", "postgresql//", "DATABASE_URL: postgresql://"),
            )
        ),
    ],
)
def test_a_mistake_names_the_keyword_and_no_secret(text: str, message: str) -> None:
    with pytest.raises((ConfigError, StartupError)) as raised:
        parse_connection_string(text)
    assert message in str(raised.value)
    assert "hunter2" not in str(raised.value)


secrets = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=4, max_size=12)


@given(secrets)
def test_any_password_survives_quoting_and_is_masked(password: str) -> None:
    quoted = password.replace("'", "''")
    parsed = parse_connection_string(f"Host=db;Password='{quoted}'")
    assert isinstance(parsed, ConnectionInfo)
    assert conninfo_to_dict(parsed.conninfo())["password"] == password
    masked = parsed.masked_text()
    assert conninfo_to_dict(masked) == {"host": "db", "password": "******"}
    assert masked in repr(parsed)


def test_values_that_libpq_hides_are_masked() -> None:
    hidden = [item.keyword.decode() for item in pq.Conninfo.get_defaults() if item.dispchar == b"*"]
    assert "password" in hidden
    for keyword in hidden:
        assert conninfo_to_dict(ConnectionInfo({keyword: "hunter2"}).masked_text()) == {keyword: "******"}


def settings(**overrides: str) -> Settings:
    return assemble(load_files([]), [(key.replace("__", ":"), text) for key, text in overrides.items()], {}).settings


@pytest.mark.parametrize(
    ("names", "wanted", "chosen"),
    [
        (["Admin", "default"], None, "default"),
        (["b", "A"], None, "A"),
        (["a", "b"], "B", "b"),
    ],
)
def test_the_main_connection_is_the_configured_one_then_default_then_the_first(
    names: list[str], wanted: str | None, chosen: str
) -> None:
    keys = {f"ConnectionStrings__{name}": "host=x" for name in names}
    if wanted:
        keys["Service__ConnectionName"] = wanted
    assert main_connection_name(settings(**keys)) == chosen


def test_an_unknown_connection_name_lists_the_existing_ones() -> None:
    with pytest.raises((ConfigError, StartupError), match="'Nope', but ConnectionStrings has Main"):
        main_connection_name(settings(ConnectionStrings__Main="host=x", Service__ConnectionName="Nope"))


def test_the_application_name_is_shown_to_the_database_unless_switched_off() -> None:
    keys = {"ConnectionStrings__Default": "host=x application_name=mine"}
    named = connection_for(settings(**keys), "Default", "folder")
    stored = connection_for(
        settings(**keys, ConnectionSettings__SetApplicationNameInConnection="false"), "Default", "folder"
    )
    assert isinstance(named, ConnectionInfo)
    assert isinstance(stored, ConnectionInfo)
    assert named.parameters["application_name"] == "folder"
    assert stored.parameters["application_name"] == "mine"


def test_a_session_setting_with_blanks_arrives_in_the_database(own_database: Database) -> None:
    own = conninfo_to_dict(own_database.conninfo)
    pairs = ";".join(f"{name}={value}" for name, value in own.items())
    parsed = parse_connection_string(f"{pairs};Search Path=pg_catalog, public;Timezone=Europe/Paris")
    assert isinstance(parsed, ConnectionInfo)
    with psycopg.connect(parsed.conninfo()) as connection:
        row = connection.execute("select current_setting('search_path'), current_setting('TimeZone')").fetchone()
    assert row == ("pg_catalog, public", "Europe/Paris")
