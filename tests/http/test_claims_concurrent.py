"""Many concurrent users over few connections: claims never reach the request of another user (access-14 to access-20).

Routines of every kind alternate on the same connections, pipelined and alone, and end in every way: with a result, with
an error, after a COMMIT of their own. Each returns the identity of its caller.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.harness.database import Database
from tests.harness.service import Service
from tests.http.conftest import Serve
from tests.http.members import EVERY_SCHEME, bearer

pytestmark = pytest.mark.attack

_NAMES = ("request.user_id", "request.user_name", "request.user_roles", "request.claims")
_SAID = " || '|' || ".join(f"coalesce(current_setting('{name}', true), '')" for name in _NAMES)

SQL = f"""
create function sign_in(_n int) returns table (user_id int, user_name text, user_roles text[], scheme text)
language sql as $$select _n, 'user-' || _n, array['r' || _n, 'all'], 'BearerToken'$$;
comment on function sign_in(int) is 'HTTP POST
login';

create function said() returns text language sql volatile as $$select {_SAID}$$;
create function read_quickly() returns text language sql stable as $$select {_SAID}$$;
comment on function read_quickly() is 'HTTP GET
user_context';
create function written() returns text language sql volatile as $$select {_SAID}$$;
comment on function written() is 'HTTP POST
user_context';
create function many() returns setof text language sql stable as $$select {_SAID} from generate_series(1, 3)$$;
comment on function many() is 'HTTP GET
user_context';
create function failing() returns text language plpgsql stable as $$begin raise exception '%', {_SAID}; end$$;
comment on function failing() is 'HTTP GET
user_context';

create table noted (client int, said text);
create procedure committing(_client int) language plpgsql as $$begin
    commit;
    insert into noted values (_client, said());
    commit;
end$$;
comment on procedure committing(int) is 'HTTP POST
user_context';

create procedure committing_in_vain() language plpgsql as $$begin
    commit;
    raise exception '%', said();
end$$;
comment on procedure committing_in_vain() is 'HTTP POST
user_context';

create function quietly() returns text language sql stable as $$select {_SAID}$$;
comment on function quietly() is 'HTTP GET';
create function quietly_written() returns text language sql volatile as $$select {_SAID}$$;
comment on function quietly_written() is 'HTTP POST';

create function injected(_user_id text default null, _user_roles text[] default null, _user_claims json default null)
returns text language sql stable as $$select concat_ws('|', _user_id, _user_roles, _user_claims)$$;
comment on function injected(text, text[], json) is 'HTTP GET
user_parameters';
create function injected_written(_user_id text default null, _user_roles text[] default null) returns text
language sql volatile as $$select concat_ws('|', _user_id, _user_roles)$$;
comment on function injected_written(text, text[]) is 'HTTP POST
user_parameters';
create function only_third() returns text language sql stable as $$select 'in'$$;
comment on function only_third() is 'HTTP GET
authorize r3';
create function kept(_user_id text default null) returns text language sql volatile
as $$select coalesce(_user_id, '')$$;
comment on function kept(text) is 'HTTP GET
user_parameters
cached';
"""

CLIENTS, ROUNDS, MANY_ROUNDS = 12, 8, 40
ANONYMOUS = "|||"


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    settings = {
        **EVERY_SCHEME,
        "Service:AuthenticationOptions:ClaimsJsonContextKey": "request.claims",
        "ConnectionSettings:Pool:SharedConnections": "1",
        "ConnectionSettings:Pool:ExclusiveConnections": "2",
    }
    return serve(database, SQL, settings)


class Client:
    """One user with a separate connection. Number 0 is not signed in."""

    def __init__(self, service: Service, number: int) -> None:
        self.number = number
        self.http = service.new_client()
        if number:
            token = self.http.post("/api/sign-in", json={"n": number}).json()["accessToken"]
            self.http.headers.update(bearer(token))

    @property
    def context(self) -> str:
        n = self.number
        claims = f'{{"user_id":"{n}","user_name":"user-{n}","user_roles":["r{n}","all"]}}'
        return f'{n}|user-{n}|{{"r{n}","all"}}|{claims}' if n else ANONYMOUS

    @property
    def parameters(self) -> str:
        n = self.number
        return f'{n}|{{r{n},all}}|{{"user_id":"{n}","user_name":"user-{n}","user_roles":["r{n}","all"]}}' if n else ""

    def get(self, path: str) -> str:
        return self.http.get(path).text

    def post(self, path: str) -> str:
        return self.http.post(path, json={}).text


def _read(client: Client) -> None:
    assert client.get("/api/read-quickly") == client.context
    assert client.http.get("/api/many").json() == [client.context] * 3


def _write(client: Client) -> None:
    assert client.post("/api/written") == client.context


def _fail(client: Client) -> None:
    response = client.http.get("/api/failing")
    assert (response.status_code, response.json()["title"]) == (400, client.context)
    response = client.http.post("/api/committing-in-vain", json={})
    assert (response.status_code, response.json()["title"]) == (400, client.context)


def _commit(client: Client) -> None:
    assert client.http.post("/api/committing", json={"client": client.number}).status_code == 204


def _receive_no_claims(client: Client) -> None:
    assert client.get("/api/quietly") == ANONYMOUS
    assert client.post("/api/quietly-written") == ANONYMOUS


def _receive_claims(client: Client) -> None:
    assert client.get("/api/injected") == client.parameters
    assert client.post("/api/injected-written") == client.parameters.rpartition('|{"')[0]


def _check_role(client: Client) -> None:
    expected = 401 if not client.number else 200 if client.number == 3 else 403
    assert client.http.get("/api/only-third").status_code == expected


def _get_cached(client: Client) -> None:
    assert client.get("/api/kept") == (str(client.number) if client.number else "")


STEPS: tuple[Callable[[Client], None], ...] = (
    _read, _write, _fail, _commit, _receive_no_claims, _receive_claims, _check_role, _get_cached,
)  # fmt: skip


@pytest.mark.slow
def test_no_caller_sees_the_claims_of_another(service: Service, database: Database) -> None:
    _interleave(service, database, ROUNDS)


@pytest.mark.slow
def test_thousands_of_interleaved_requests_do_not_mix_claims(service: Service, database: Database) -> None:
    """About 6,000 requests of 12 callers."""
    _interleave(service, database, MANY_ROUNDS)


def _interleave(service: Service, database: Database, rounds: int) -> None:
    database.execute("truncate noted")
    clients = [Client(service, number) for number in range(CLIENTS)]

    def run_steps(client: Client) -> None:
        for turn in range(rounds * len(STEPS)):
            # Each begins with another step, so that different routines share connections.
            STEPS[(turn + client.number) % len(STEPS)](client)
        client.http.close()

    with ThreadPoolExecutor(CLIENTS) as threads:
        for done in [threads.submit(run_steps, client) for client in clients]:
            done.result()
    noted = database.fetch("select client, said, count(*)::int from noted group by 1, 2 order by 1")
    assert noted == [(client.number, client.context, rounds) for client in clients]
