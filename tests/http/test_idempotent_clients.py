"""Generated clients send an `Idempotency-Key`, and repeat requests whose outcome is unknown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rowcall.service.installation.script import install_sql
from tests.harness.database import Database
from tests.harness.node import compile_strictly, run
from tests.harness.python_client import load_client, type_errors
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create table payment (id int generated always as identity primary key, amount int unique);
create function pay(_amount int) returns table (id int, amount int) language sql as
$$ insert into payment (amount) values (_amount) returning * $$;
comment on function pay(int) is 'HTTP POST /pay
idempotent required
single';
"""
P = "Service:ClientCodeGen:"
Q = "Service:PythonClientCodeGen:"
CALLS = """
import * as api from "./publicApi.js";
const real = globalThis.fetch;
const keys = [];
let failures = 2;
globalThis.fetch = async (url, init) => {
    keys.push(init.headers.get("Idempotency-Key"));
    const response = await real(url, init);
    if (failures-- > 0) { throw new TypeError("the answer is lost"); }
    return response;
};
const first = await api.pay({amount: 1});
const refused = await api.pay({amount: 1});
console.log(JSON.stringify({first, status: refused.status, keys}));
"""


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Service:
    folder = tmp_path_factory.mktemp("client")
    database.execute(install_sql())
    settings = {
        P + "Enabled": "true",
        P + "IncludeSchemaInNames": "false",
        P + "SkipTypes": "true",
        P + "IncludeStatusCode": "false",
        P + "FilePath": str(folder / "{0}Api.js"),
        Q + "Enabled": "true",
        Q + "IncludeStatusCode": "false",
        Q + "FilePath": str(folder / "{0}_api.py"),
    }
    service = serve(database, SQL, settings)
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    (folder / "calls.js").write_text(CALLS, encoding="utf-8")
    service.folder = folder
    return service


@pytest.mark.slow
def test_typescript_repeats_with_the_same_key(service: Service, database: Database) -> None:
    folder: Path = service.folder
    responses = json.loads(run(folder / "calls.js"))
    assert responses["first"]["amount"] == 1
    assert responses["status"] == 409
    assert len(responses["keys"]) == 4
    assert len(set(responses["keys"][:3])) == 1
    assert len(set(responses["keys"])) == 2
    assert database.value("select count(*) from payment where amount = 1") == 1


@pytest.mark.slow
def test_the_compiler_accepts_the_helper(
    database: Database, service: Service, serve_once: Serve, tmp_path: Path
) -> None:
    settings = {P + "Enabled": "true", P + "CreateSeparateTypeFile": "false", P + "FilePath": str(tmp_path / "{0}.ts")}
    serve_once(database, settings=settings)
    assert "fetchOnce" in (tmp_path / "public.ts").read_text(encoding="utf-8")
    assert compile_strictly(tmp_path) == ""


@pytest.mark.slow
def test_python_repeats_with_the_same_key(service: Service, database: Database) -> None:
    assert type_errors(service.folder, "public_api.py") == ""
    module = load_client(service.folder / "public_api.py")
    with module.Client(service.url) as client:
        send = client.http.request
        lost = iter((True, True))

        def losing(*arguments: object, **options: object) -> object:
            response = send(*arguments, **options)
            if next(lost, False):
                raise module.httpx.ReadError("the answer is lost")
            return response

        client.http.request = losing
        assert client.pay(amount=2)["amount"] == 2
        with pytest.raises(module.ApiError) as caught:
            client.pay(amount=2)
        assert caught.value.status == 409
    assert database.value("select count(*) from payment where amount = 2") == 1
