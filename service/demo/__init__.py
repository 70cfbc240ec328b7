"""The demo: a schema to look around in, on a private PostgreSQL, and URLs to try."""

from __future__ import annotations

import hashlib
import importlib.resources

import psycopg

from rowcall.service.connection_string import ConnectionInfo

_EXAMPLES = (("the night sky", "/api/constellations"),)


def install(connection: ConnectionInfo) -> None:
    """Create the demo schema; one of another version of rowcall is replaced."""
    sql = importlib.resources.files(__package__).joinpath("schema.sql").read_text(encoding="utf-8")
    mark = f"rowcall demo {hashlib.sha256(sql.encode()).hexdigest()[:16]}"
    with psycopg.connect(connection.conninfo(), autocommit=True) as database:
        row = database.execute("select obj_description(to_regnamespace('demo'), 'pg_namespace')").fetchone()
        if row is not None and row[0] == mark:
            return
        with database.transaction():
            database.execute(sql.encode())
            database.execute(f"comment on schema demo is '{mark}'".encode())


def print_examples(urls: list[str]) -> None:
    """Called once the service listens."""
    base = urls[0]
    print("\nThe demo is running. Try:\n")
    for what, request in _EXAMPLES:
        print(f"  curl {base}{request}    # {what}")
    print("\nCtrl-C stops everything.\n", flush=True)
