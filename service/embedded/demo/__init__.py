"""The demo: an example schema on a private PostgreSQL, and requests to try.

Its example is a small town's bicycle couriers; `schema.sql` contains it, with comments for beginners.
"""

from __future__ import annotations

import hashlib
import importlib.resources
import importlib.util
from pathlib import Path

import psycopg

from rowcall.service.options.connection_string import ConnectionInfo


def _viewer() -> tuple[tuple[str, str], ...]:
    """Return the settings for the files of the OpenAPI viewer, or none if its package is not installed."""
    spec = importlib.util.find_spec("swagger_ui")
    if spec is None or spec.origin is None:
        return ()
    return ("StaticFiles:Enabled", "true"), ("StaticFiles:RootPath", str(Path(spec.origin).parent / "static"))


SETTINGS = (
    ("Service:CrudSource:Enabled", "true"),
    ("CacheOptions:Enabled", "true"),
    ("Service:UploadOptions:Enabled", "true"),
    ("Auth:CookieAuth", "true"),
    ("Auth:BearerTokenAuth", "true"),
    ("Auth:External:LoginCommand", "select * from demo.external_login($1, $2)"),
    ("Auth:PasskeyAuth:Enabled", "true"),
    ("Auth:PasskeyAuth:RelyingPartyName", "Bicycle couriers"),
    ("Auth:PasskeyAuth:ChallengeAddExistingUserCommand", "select * from demo.passkey_add_options($1, $2)"),
    ("Auth:PasskeyAuth:ChallengeAuthenticationCommand", "select * from demo.passkey_login_options()"),
    ("Auth:PasskeyAuth:VerifyChallengeCommand", "select demo.passkey_take_challenge($1)"),
    ("Auth:PasskeyAuth:CompleteAddExistingUserCommand", "select demo.passkey_keep($1, $3, $4, $7)"),
    ("Auth:PasskeyAuth:AuthenticateDataCommand", "select * from demo.passkey_of($1)"),
    ("Auth:PasskeyAuth:CompleteAuthenticateCommand", "select * from demo.passkey_sign_in($1, $2)"),
    ("Service:OpenApiOptions:Enabled", "true"),
    ("Service:OpenApiOptions:FileName", ""),
    ("Service:OpenApiOptions:SpecVersion", "3.1"),
    ("Service:OpenApiOptions:DocumentTitle", "Bicycle couriers"),
    ("Service:ExactTypes", "true"),
    ("Service:StrictJsonTypes", "true"),
    *_viewer(),
    ("Service:SqlFileSource:FilePattern", f"{importlib.resources.files(__name__)}/files/*.sql"),
    ("TestRunner:FilePattern", f"{importlib.resources.files(__name__)}/tests/*.test.sql"),
)
"""Settings of the demo besides the defaults."""

EXAMPLES = (
    ("curl {base}/couriers", "a list of objects, with arrays, dates and json"),
    ("curl {base}/couriers/3", "one record, chosen by the path"),
    ("curl '{base}/parcels?district=mil&minWeight=15&limit=3'", "a search with optional parameters"),
    ("curl '{base}/parcels/7/journey'", "composite values and an array of timestamps"),
    ("curl {base}/dashboard", "json made by the database"),
    ("curl '{base}/busiest?day=2026-01-09&top=2'", "an overload, chosen by the names given"),
    ("curl {base}/api/demo/parcel-count", "a single number, at a path made from its name"),
    ("curl '{base}/hello?name=you'", "plain text"),
    ("curl '{base}/quote?size=box&weight=4&district=har'", "an exact number"),
    ("curl '{base}/quote?size=box&weight=40&district=har'", "RAISE EXCEPTION becomes a 400"),
    (
        'curl {base}/parcels --json \'{{"size":"box","weight":2,"street":"Quay","number":5,"district":"uni"}}\'',
        "writes a row",
    ),
    ("curl {base}/forecast", "takes a second, the first time: its answer is kept for a minute"),
    ("curl '{base}/complaints?settled=false'", "a table with no function in front of it; its columns are filters"),
    (
        'curl -X PUT {base}/complaints --json \'{{"parcel":9,"text":"Too late"}}\'',
        "adds a row to the table; what is left out gets its default",
    ),
    ("curl {base}/complaints/2 --json '{{\"settled\":true}}'", "changes a row of it"),
    (
        "curl '{base}/slowest-districts?top=2'",
        "a file of SQL, in service/embedded/demo/files; the database does not know of it",
    ),
    ("curl {base}/couriers/3/overview", "another one: three statements, one answer"),
    ("curl {base}/round-page", "a page that shows how far a long routine is, while it runs; open it in a browser"),
    ("curl -i {base}/payroll", "only for dispatchers who have signed in: 401"),
    (
        "curl {base}/login",
        "a page to sign in with; open it in a browser, as alma (pedals) or dagny (bells), or with a passkey",
    ),
    ("curl {base}/api-page", "a page that shows the OpenAPI document, to read and to try; open it in a browser"),
    ("curl {base}/orders", "a page to upload CSV files with; each line orders a parcel"),
    (
        'curl -i {base}/sign-in --json \'{{"name":"alma","password":"pedals"}}\'',
        "signs in: a session in a cookie, for /my/parcels",
    ),
)
"""Commands to try, with their explanations."""


def install(connection: ConnectionInfo) -> None:
    """Create the schema `demo`. If it exists in this version, nothing is done; any other schema of this name is
    dropped, with its data. Raises `psycopg.Error`."""
    sql = importlib.resources.files(__name__).joinpath("schema.sql").read_text(encoding="utf-8")
    mark = f"rowcall demo {hashlib.sha256(sql.encode()).hexdigest()[:16]}"
    with psycopg.connect(connection.conninfo(), autocommit=True) as database:
        row = database.execute("select obj_description(to_regnamespace('demo'), 'pg_namespace')").fetchone()
        if row is not None and row[0] == mark:
            return
        with database.transaction():
            database.execute(sql.encode())
            database.execute(f"comment on schema demo is '{mark}'".encode())


def print_examples(urls: list[str]) -> None:
    """Print the examples to standard output, with the first of `urls` as the address of the service. urls: addresses on
    which it listens, at least one."""
    print("\nThe demo is running: a small town's bicycle couriers. Try, in another terminal:\n")
    for command, explanation in EXAMPLES:
        print(f"  # {explanation}\n  {command.format(base=urls[0])}")
    print("\nCtrl-C stops everything.\n", flush=True)
