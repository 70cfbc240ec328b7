"""The OpenAPI documents of the demo and of the record shop, tried out at length by schemathesis."""

from __future__ import annotations

from tests.harness.service import Service
from tests.http.test_openapi_tried import couriers, shop, try_out

__all__ = ["couriers", "shop"]


def test_the_demo_is_as_it_says(couriers: Service) -> None:
    assert try_out(couriers, 40) == []


def test_the_record_shop_is_as_it_says(shop: Service) -> None:
    assert try_out(shop, 40) == []
