"""The served OpenAPI documents of the demo and of the record shop, tried out by schemathesis: what a document says of
requests is sent, and what comes back has to be as it says (issue 21).

Few examples, always the same ones; tests/drills/test_openapi_at_length.py sends many.
"""

from __future__ import annotations

import importlib.resources
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as examples

from rowcall.service.embedded import demo
from tests.docs.pages import application_settings
from tests.harness.database import Database
from tests.harness.service import Service
from tests.http.conftest import Serve

EXPLAINED = {
    "POST /round": "takes as long as one asks",
    "POST /orders": "without a file there is no result, which is an empty text",
}
DESCRIBED = {
    "Service:OpenApiOptions:Enabled": "true",
    "Service:OpenApiOptions:FileName": "",
    "Service:OpenApiOptions:SpecVersion": "3.1",
    "Service:ExactTypes": "true",
    "Service:RequiresAuthorization": "false",
}
SHOP = Path(__file__).parents[2] / "examples" / "record-shop"


@pytest.fixture(scope="module")
def couriers(database: Database, serve: Serve) -> Service:
    schema = importlib.resources.files(demo).joinpath("schema.sql").read_text(encoding="utf-8")
    return serve(database, schema, {**dict(demo.SETTINGS), **DESCRIBED})


@pytest.fixture(scope="module")
def shop(database: Database, serve: Serve) -> Service:
    schema = (SHOP / "schema.sql").read_text(encoding="utf-8")
    return serve(database, schema, {**application_settings(SHOP), **DESCRIBED})


def try_out(service: Service, count: int) -> list[str]:
    """What is not as the document says, named by operation."""
    # Here: each process of a run collects all files, and this library takes half a second to import.
    import schemathesis
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
        unsupported_method,
    )

    # Not among them is that every value that fits a schema is accepted: routines refuse what they want to.
    checks = [
        not_a_server_error,
        status_code_conformance,
        content_type_conformance,
        response_schema_conformance,
        unsupported_method,
    ]
    found: list[str] = []
    tried = 0
    document = schemathesis.openapi.from_url(f"{service.url}/openapi.json")
    limits = examples(
        max_examples=count,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    for result in document.get_all_operations():
        operation = result.ok()
        if operation.label in EXPLAINED:
            continue
        tried += 1

        @limits
        @given(case=operation.as_strategy())
        def one(case: schemathesis.Case) -> None:
            case.call_and_validate(base_url=service.url, checks=checks, timeout=60)

        try:
            one()
        except Exception as error:
            found.append(f"{operation.label}: {error!r}"[:2000])
    assert tried > 5
    return found


@pytest.mark.slow
def test_the_demo_is_as_it_says(couriers: Service) -> None:
    assert try_out(couriers, 4) == []


@pytest.mark.slow
def test_the_record_shop_is_as_it_says(shop: Service) -> None:
    assert try_out(shop, 4) == []
