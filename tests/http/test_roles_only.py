"""`authorize` names roles. User ids and names match only with `user:` and `name:`, as users may choose their names
(access-1 to access-4).
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create function sign_in(_who text, _id text, _roles text[])
returns table (user_id text, user_name text, user_roles text[]) language sql as $$select _id, _who, _roles$$;
comment on function sign_in is 'HTTP POST
login';
"""

# Line of the comment → statuses for those of CALLERS: the role boss, the name boss, the id boss, kiri and Kiri.
ACCESS = {
    "authorize boss": "200 403 403 403 403",
    "authorize Boss": "200 403 403 403 403",
    "authorize name:boss": "403 200 403 403 403",
    "authorize user:boss": "403 403 200 403 403",
    "authorize kiri": "403 403 403 403 403",
    "authorize 41": "403 403 403 403 403",
    "authorize user:41": "403 403 403 200 403",
    "authorize name:kiri": "403 403 403 200 403",
    "authorize name:Kiri": "403 403 403 403 200",
    "authorize user:42": "403 403 403 403 403",
    "authorize boss, name:kiri": "200 403 403 200 403",
    "authorize user:41 user:042": "403 403 403 200 200",
    "authorize USER:41": "403 403 403 200 403",
    "authorize user:": "403 403 403 403 403",
    "authorize name:*": "403 403 403 403 403",
}

CALLERS = [
    ("x", "1", ["boss"]),
    ("boss", "2", ["clerk"]),
    ("y", "boss", ["clerk"]),
    ("kiri", "41", []),
    ("Kiri", "042", []),
]


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    routines = "".join(
        f"create function f_{number}() returns text language sql stable as $$select 'in'$$;\n"
        f"comment on function f_{number} is 'HTTP GET\n{line}';\n"
        for number, line in enumerate(ACCESS)
    )
    return serve(database, SQL + routines, {"Auth:BearerTokenAuth": "true"})


@pytest.fixture(scope="module")
def callers(service: Service) -> list[Mapping[str, str]]:
    bodies = [{"who": who, "id": identity, "roles": roles} for who, identity, roles in CALLERS]
    made = [service.post("/api/sign-in", json=body).json()["accessToken"] for body in bodies]
    return [{"Authorization": f"Bearer {token}"} for token in made]


@pytest.mark.parametrize(("number", "line"), list(enumerate(ACCESS)), ids=list(ACCESS))
def test_callers_are_admitted_according_to_their_roles(
    service: Service, callers: list[Mapping[str, str]], number: int, line: str
) -> None:
    statuses = [service.get(f"/api/f-{number}", headers=headers).status_code for headers in callers]
    assert " ".join(map(str, statuses)) == ACCESS[line]


def test_a_refusal_names_roles_and_no_users(service: Service, callers: list[Mapping[str, str]]) -> None:
    """The refusal does not show which users have access."""
    number = list(ACCESS).index("authorize boss, name:kiri")
    detail = problem(service.get(f"/api/f-{number}", headers=callers[1]), 403)["detail"]
    assert "boss" in detail
    assert "kiri" not in detail
