"""Whether commands before routines end with the transaction, and their forms that last as long as the session."""

from __future__ import annotations

import pytest

from rowcall.core.endpoint.before_routine import ends_with_transaction, for_the_session


@pytest.mark.parametrize(
    ("sql", "lasting"),
    [
        ("set local role app_user", "set session role app_user"),
        ("set  local role app_user", "set  session role app_user"),
        ("set\n local role app_user;", "set\n session role app_user;"),
        ("SET /* x */ LOCAL\trole app_user", "SET /* x */ session\trole app_user"),
        ("-- the role\nset local role app_user", "-- the role\nset session role app_user"),
        ("set local app.tenant = 'a;b'", "set session app.tenant = 'a;b'"),
        ("set local session authorization app_user", "set session session authorization app_user"),
        ("select set_config('app.tenant', $1::text, true)", "select set_config('app.tenant', $1::text, false)"),
    ],
)
def test_local_commands_end_with_the_transaction(sql: str, lasting: str) -> None:
    assert ends_with_transaction(sql)
    assert for_the_session(sql) == lasting
    assert not ends_with_transaction(lasting)


@pytest.mark.parametrize(
    "sql",
    [
        "set role app_user",
        "set session role app_user",
        "set session authorization app_user",
        "set session characteristics as transaction read only",
        "set time zone 'UTC'",
        "set default_transaction_read_only = on",
        "set local.tenant = 'north'",
        "set local .tenant = 'north'",
        "set session /* x */ . tenant = 'north'",
        "set transaction.label = 'x'",
        "select set_config('app.tenant', 'north', false)",
    ],
)
def test_commands_with_session_scope_are_unchanged(sql: str) -> None:
    assert not ends_with_transaction(sql)
    assert for_the_session(sql) == sql


@pytest.mark.parametrize(
    "sql",
    [
        "set transaction read only",
        "set  transaction read only",
        "set local transaction read only",
        "set session transaction read only",
        "set session /* x */ transaction isolation level serializable",
        "set transaction_read_only = on",
        "set session Transaction_Read_Only to on",
        'set local "transaction_isolation" = serializable',
        "set  constraints all deferred",
        "select set_config('TRANSACTION_READ_ONLY', 'on', true)",
        "select set_config('app.x', 'y', true), set_config('transaction_deferrable', 'on', false)",
    ],
)
def test_transaction_settings_have_no_session_form(sql: str) -> None:
    assert for_the_session(sql) is None


@pytest.mark.parametrize(
    "sql",
    [
        "",
        "set",
        "set local",
        "set local role a; set local role b",
        'set u&"rol\\0065" = app_user',
        "select /* x */ set_config('role', 'app_user', true)",
        "select become('app_user')",
        "reset role",
    ],
)
def test_other_commands_are_unknown(sql: str) -> None:
    assert not ends_with_transaction(sql)
    assert for_the_session(sql) is None
