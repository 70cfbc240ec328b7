"""The OpenAPI documents of the demo and of the record shop, tested at length by schemathesis."""

from __future__ import annotations

from pathlib import Path

from tests.http.test_openapi_tried import SIGNED_IN, Application, couriers, shop, try_out

__all__ = ["couriers", "shop"]


@SIGNED_IN
def test_the_demo_conforms_to_its_document(couriers: Application, signed_in: bool, tmp_path: Path) -> None:
    try_out(couriers, "3.1", tmp_path, signed_in=signed_in, count=40)


@SIGNED_IN
def test_the_record_shop_conforms_to_its_document(shop: Application, signed_in: bool, tmp_path: Path) -> None:
    try_out(shop, "3.1", tmp_path, signed_in=signed_in, count=40)
