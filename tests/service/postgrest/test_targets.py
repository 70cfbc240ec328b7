"""What a path addresses."""

from __future__ import annotations

import pytest

from rowcall.core.postgrest.options import PostgRestOptions
from rowcall.service.postgrest.request import Resource, resource_of


@pytest.mark.parametrize(
    ("function", "name"), [("root", "root"), ("api.root", "root"), ("api.page.html", "page.html"), (None, "")]
)
def test_the_root(function: str | None, name: str) -> None:
    """The schema of `db-root-spec` ends at its first dot."""
    resource = Resource.ROOT if function is None else Resource.FUNCTION
    assert resource_of((), PostgRestOptions(root_function=function)) == (resource, name)
