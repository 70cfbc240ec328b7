"""Environment variables in values of annotations, where the configuration allows them (comments-26 to comments-28,
outbound-1, outbound-2)."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create function zone(_region text default 'mars', _n int default 1) returns int language sql stable as 'select 1';
comment on function zone(text, int) is E'HTTP
X-Site: {SITE} of {owner}
X-Both: {REGION}
X-Unset: [{COLOUR}] {!colour:blue} {STYLE}
X-Closed: {HOME}
Content-Type: text/{site}';
"""


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("SITE", b"north\\r\\nX-Evil: 1".decode("unicode_escape"))
        environment.setenv("OWNER", "Ada")
        environment.setenv("REGION", "venus")
        environment.delenv("COLOUR", raising=False)
        environment.delenv("STYLE", raising=False)
        names = {"SITE": "", "OWNER": "", "REGION": "", "STYLE": "plain"}
        settings = {f"Service:AvailableEnvVars:{name}": text for name, text in names.items()}
        return serve(database, SQL, {**settings, "Service:AvailableEnvVars:COLOUR": ""})


def header(service: Service, name: str, query: str = "") -> str | None:
    value: str | None = service.get(f"/api/zone{query}").headers.get(name)
    return value


def test_a_variable_is_expanded_once_and_cannot_end_the_header(service: Service) -> None:
    assert header(service, "x-site") == "northX-Evil: 1 of Ada"
    assert header(service, "content-type") == "text/northX-Evil: 1"
    assert header(service, "x-evil") is None


def test_a_parameter_has_precedence_over_a_variable_of_the_same_name(service: Service) -> None:
    assert header(service, "x-both", "?region=earth") == "earth"


def test_an_unset_variable_has_its_default_text(service: Service) -> None:
    assert header(service, "x-unset") == "[]  plain"


def test_variables_that_are_not_permitted_are_not_replaced(service: Service) -> None:
    assert header(service, "x-closed") == "{HOME}"
