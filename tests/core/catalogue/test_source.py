"""Objects with SQL of their own become endpoints like routines."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

from rowcall.core.catalogue.catalog import VOID_TYPE, Parameter, RoutineKind
from rowcall.core.catalogue.source import Transport
from rowcall.core.data.record import Record
from rowcall.core.endpoint.call import call_sql
from rowcall.core.endpoint.endpoint import Endpoint, ResultPath
from rowcall.core.endpoint.result_shape import result_shape
from tests.core.routines import GAUGE, catalog, endpoint, parameter, routine


@dataclass(frozen=True, slots=True)
class Script(Record):
    """A source that names its parameters."""

    identity: str
    tags: frozenset[str] = frozenset()
    claimed: frozenset[str] = frozenset()
    methods: frozenset[str] = frozenset()
    writes: bool = False
    method: str = "DELETE"
    transport: Transport = Transport.QUERY
    path: str = "/prefix/script"

    def sql(self, endpoint: Endpoint, present: int) -> str:
        return f"script {present:b} of {len(endpoint.parameters)}"


def script(*parameters: Parameter, **changes: Any) -> Endpoint:
    comment = changes.pop("comment", None)
    source = Script("a script", **changes)
    return endpoint(*parameters, source=source, kind=RoutineKind.FILE, returns=VOID_TYPE, comment=comment)


def test_method_transport_and_path_are_those_of_the_source() -> None:
    made = script()
    assert (made.method, made.transport, made.path) == ("DELETE", Transport.QUERY, "/prefix/script")


def test_annotations_precede_the_source() -> None:
    made = script(comment="HTTP DELETE /elsewhere")
    assert (made.method, made.transport, made.path) == ("DELETE", Transport.BODY, "/elsewhere")


def test_the_source_writes_the_statement() -> None:
    assert call_sql(script(parameter("a", default=True), parameter("b")), 0b10) == "script 10 of 2"


def test_a_composite_parameter_of_a_source_is_not_split() -> None:
    assert [item.cast for item in script(parameter("box", GAUGE)).parameters] == ['"public"."gauge"']


def test_the_type_void_gives_no_content_without_a_catalogue_entry() -> None:
    made = routine(source=Script("a script"), kind=RoutineKind.FILE, returns=VOID_TYPE)
    without = {oid: info for oid, info in catalog().types.items() if oid != VOID_TYPE}
    assert result_shape(made, without, camel=True).path is ResultPath.VOID


def test_for_lines_match_the_tags_of_the_source_and_are_prose_without_any() -> None:
    comment = "HTTP\nfor reading\npath /muted"
    assert script(comment=comment, tags=frozenset({"writing"})).path == "/prefix/script"
    assert script(comment=comment).path == "/muted"


def test_messages_use_the_name_of_the_source() -> None:
    assert script().routine.identity == "a script"


def test_a_source_can_be_pickled() -> None:
    made = script(parameter("a"))
    assert pickle.loads(pickle.dumps(made)) == made
