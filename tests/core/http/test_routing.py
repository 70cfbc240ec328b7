"""Finding the route for a method and path."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.catalogue.catalog import Parameter
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.http.router import MalformedPathError, Router, decode_path
from rowcall.core.http.routing import MOST_CHANGES, RouteError, Routing, build_router
from tests.core.routines import endpoint, parameter


def endpoint_at(method: str, path: str, *parameters: Parameter, name: str = "f") -> Endpoint:
    return endpoint(*parameters, name=name, comment=f"HTTP {method} {path}")


def router(*templates: str) -> Router:
    """Build a router from texts like `GET /a/{b}`."""
    built, diagnostics = build_router(_from_text(template) for template in templates)
    assert diagnostics == []
    return built


def _from_text(template: str) -> Endpoint:
    method, path = template.split()
    return endpoint_at(method, path, name=template)


def found(built: Router, method: str, path: str) -> tuple[str, dict[str, str]] | None:
    match = built.find(method, path)
    return None if match is None else (match.route.path, dict(match.values))


@pytest.mark.parametrize("path", ["/a/b", "/a/b/", "/A/b", "/a/B/"])
def test_literals_match_in_any_case_with_or_without_a_trailing_slash(path: str) -> None:
    assert found(router("GET /a/b"), "GET", path) == ("/a/b", {})


@pytest.mark.parametrize("path", ["/a", "/a/b/c", "/a/b//", "//a/b", "/", "", "/a//b"])
def test_other_paths_do_not_match(path: str) -> None:
    assert found(router("GET /a/b"), "GET", path) is None


def test_a_template_with_a_trailing_slash_matches_without() -> None:
    assert found(router("GET /a/"), "GET", "/a") == ("/a", {})


def test_the_root_can_be_a_path() -> None:
    assert found(router("GET /"), "GET", "/") == ("/", {})


def test_a_repeated_literal_path_returns_the_same_object() -> None:
    built = router("GET /a/b")
    assert built.find("GET", "/a/b") is built.find("GET", "/a/b")


def test_values_keep_their_case() -> None:
    assert found(router("GET /a/{x}/c/{y}"), "GET", "/A/Bee/C/Dee") == ("/a/{x}/c/{y}", {"x": "Bee", "y": "Dee"})


def test_literals_beat_parameters_from_the_left() -> None:
    built = router("GET /a/{x}", "GET /a/b", "GET /a/{x}/c", "GET /a/b/{y}")
    assert found(built, "GET", "/a/b") == ("/a/b", {})
    assert found(built, "GET", "/a/z") == ("/a/{x}", {"x": "z"})
    assert found(built, "GET", "/a/b/c") == ("/a/b/{y}", {"y": "c"})


def test_routing_backtracks_from_a_literal_without_match() -> None:
    assert found(router("GET /a/b/c", "GET /a/{x}/d"), "GET", "/a/b/d") == ("/a/{x}/d", {"x": "b"})


def test_an_empty_segment_does_not_match_a_parameter() -> None:
    assert found(router("GET /a/{x}/c"), "GET", "/a//c") is None


@pytest.mark.parametrize(("path", "values"), [("/a/7", {"p": "7"}), ("/a", {}), ("/a/", {})])
def test_an_optional_last_segment_may_be_left_out(path: str, values: dict[str, str]) -> None:
    assert found(router("GET /a/{p?}"), "GET", path) == ("/a/{p?}", values)


def test_a_literal_beats_an_omitted_optional_segment() -> None:
    built = router("GET /a/{p?}", "GET /a")
    assert found(built, "GET", "/a") == ("/a", {})
    assert found(built, "GET", "/a/1") == ("/a/{p?}", {"p": "1"})


def test_methods_have_their_own_routes() -> None:
    built = router("GET /a/b", "DELETE /a/{x}", "POST /a/{y}")
    assert built.allowed_methods("/a/b") == ("DELETE", "GET", "POST")
    assert built.allowed_methods("/A/z/") == ("DELETE", "POST")
    assert built.allowed_methods("/b") == ()
    assert found(built, "POST", "/a/b") == ("/a/{y}", {"y": "b"})
    assert found(built, "PATCH", "/a/b") is None


@pytest.mark.parametrize("second", ["/a/{y}", "/a/{x?}"])
def test_the_later_of_two_ambiguous_templates_is_left_out_and_both_are_reported(second: str) -> None:
    built, (diagnostic,) = build_router(
        [endpoint_at("GET", "/a/{x}", name="one"), endpoint_at("GET", second, name="two")]
    )
    assert [route.path for route in built.routes] == ["/a/{x}"]
    assert diagnostic.object == "public.two()"
    assert "/a/{x} of public.one()" in diagnostic.message


def test_internal_endpoints_have_no_route() -> None:
    built, _ = build_router([endpoint(comment="HTTP GET /a\ninternal")])
    assert built.routes == ()


@pytest.mark.parametrize("path", ["", "/" + "a" * 2048])
def test_an_impossible_path_stops_the_start(path: str) -> None:
    with pytest.raises(RouteError):
        build_router([replace(endpoint(), path=path)])


@pytest.mark.parametrize("value", ["\ufffd", "a\0"])
def test_a_value_that_is_not_utf8_is_malformed(value: str) -> None:
    with pytest.raises(MalformedPathError):
        router("GET /a/{x}").find("GET", f"/a/{value}")


@pytest.mark.parametrize(
    ("raw", "decoded"), [("/a", "/a"), ("/caf%C3%A9%20x", "/café x"), ("/a%2Fb%2f%25", "/a%2Fb%2f%")]
)
def test_raw_paths_are_decoded_except_for_slashes(raw: str, decoded: str) -> None:
    assert decode_path(raw) == decoded


@pytest.mark.parametrize("raw", ["/%", "/%4", "/%zz", "/%ff", "/%C3"])
def test_raw_paths_that_are_not_utf8_are_malformed(raw: str) -> None:
    with pytest.raises(MalformedPathError):
        decode_path(raw)


def test_overloads_share_one_route_in_the_order_of_discovery() -> None:
    small = endpoint_at("POST", "/f/{a}", parameter("a"), name="small")
    large = endpoint_at("POST", "/f/{a}", parameter("a"), parameter("b"), name="large")
    built, diagnostics = build_router([small, large])
    (route,) = built.routes
    assert diagnostics == []
    assert (route.candidates, route.primary, route.path_values) == ((small, large), large, 1)


def test_a_template_may_have_a_thousand_segments() -> None:
    path = "/a" * 1000
    assert found(router(f"GET {path}"), "GET", path.upper()) == (path, {})


SEGMENT = st.sampled_from(["a", "b", "{x}", "{y}"])
PATH = st.lists(SEGMENT, min_size=1, max_size=4).map(lambda segments: "/" + "/".join(segments))
CONCRETE = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))


@given(st.lists(PATH, max_size=6), CONCRETE)
def test_the_tree_finds_the_same_route_as_trying_every_template(templates: list[str], path: str) -> None:
    built, _ = build_router(endpoint_at("GET", template, name=str(index)) for index, template in enumerate(templates))
    fitting = [route.path for route in built.routes if _matches(route.path, path)]
    best = min(fitting, key=lambda template: ["{" in segment for segment in template.split("/")], default=None)
    match = built.find("GET", path)
    assert (match and match.route.path) == best


def _matches(template: str, path: str) -> bool:
    expected, given_ = template.split("/"), path.split("/")
    return len(expected) == len(given_) and all(
        "{" in segment or segment == actual for segment, actual in zip(expected, given_, strict=True)
    )


OTHERS = [endpoint_at("GET", f"/others/{number}", name=f"other_{number}") for number in range(12 * MOST_CHANGES)]
"""Enough routes that a few changes do not rebuild the router."""
FORMS = st.builds(
    lambda method, segments, end: f"{method} /{'/'.join(segments)}{end}",
    st.sampled_from(["GET", "PUT"]),
    st.lists(st.sampled_from(["a", "B", "b", "{x}", "{y}", "c{z}"]), min_size=1, max_size=3),
    st.sampled_from(["", "", "", "", "/", "/{o?}"]),
)
REQUESTED_PATHS = [
    f"/{'/'.join(parts)}{end}"
    for parts in (
        ["a"],
        ["b"],
        ["B"],
        ["c{z}"],
        ["a", "b"],
        ["B", "1"],
        ["a", "A", "b"],
        ["c{z}", "b"],
        ["a", "b", "1"],
    )
    for end in ("", "/")
]


@given(st.lists(st.tuples(FORMS, st.sampled_from(["old", "new", "both", "both"])), max_size=9))
def test_derived_routes_equal_rebuilt_ones(forms: list[tuple[str, str]]) -> None:
    made_of = [(_from_text(form), when) for form, when in forms]
    gone, come, stored = ([item for item, when in made_of if when == which] for which in ("old", "new", "both"))
    former = Routing([*OTHERS, *stored, *gone])
    before = _found_by(former.router)
    changed = former.with_changes(gone, come)
    assert _found_by(former.router) == before
    anew = Routing([*OTHERS, *stored, *come]).router
    if changed is None:
        return
    assert _found_by(changed.router) == _found_by(anew)
    assert {item.path for item in changed.router.routes} == {item.path for item in anew.routes}
    again = changed.with_changes(come, gone)
    assert again is None or _found_by(again.router) == before


def test_a_change_of_many_routes_rebuilds_all() -> None:
    routing = Routing(OTHERS)
    assert routing.with_changes(OTHERS[:1], []) is not None
    assert routing.with_changes(OTHERS[: len(OTHERS) // 2], []) is None


def _found_by(built: Router) -> list[object]:
    return [
        (path, built.allowed_methods(path), *(found(built, method, path) for method in ("GET", "PUT")))
        for path in REQUESTED_PATHS
    ]
