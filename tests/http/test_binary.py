"""A single bytea column is sent as its bytes (rendering-39)."""

from __future__ import annotations

import hashlib

import pytest

from tests.harness.database import Database
from tests.harness.expect import BYTES, JSON, answer
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = r"""
create function parts() returns setof bytea language sql stable
  as $$values ('\x00ff'::bytea), (null), (''), ('\x410a')$$;
create function column_of_parts() returns table(part bytea) language sql stable as 'select * from parts()';
create function no_parts() returns setof bytea language sql stable as $$select '\x00'::bytea where false$$;
create function null_parts() returns setof bytea language sql stable as 'values (null::bytea), (null)';
create function first_part() returns setof bytea language sql stable as 'select * from parts()';
create function no_first_part() returns setof bytea language sql stable as $$select '\x00'::bytea where false$$;
create function raw_parts() returns setof bytea language sql stable as 'select * from parts()';
create function two_columns() returns table(n int, part bytea) language sql stable as $$select 1, '\x00ff'::bytea$$;
create function array_of_parts() returns setof bytea[] language sql stable as $$select array['\x00ff'::bytea]$$;
create function picture() returns bytea language sql stable as $$select '\x89504e47'::bytea$$;
create function null_empty() returns bytea language sql stable as 'select null::bytea';
create function null_word() returns bytea language sql stable as 'select null::bytea';
create function null_nothing() returns bytea language sql stable as 'select null::bytea';
create function large() returns setof bytea language sql stable as
  $$select decode(repeat(lpad(to_hex(n % 256), 2, '0'), 10000), 'hex') from generate_series(0, 2999) n$$;

comment on function parts() is 'HTTP';
comment on function column_of_parts() is 'HTTP';
comment on function no_parts() is 'HTTP';
comment on function null_parts() is 'HTTP';
comment on function first_part() is E'HTTP\nsingle';
comment on function no_first_part() is E'HTTP\nsingle\nresponse_null null';
comment on function raw_parts() is E'HTTP\nraw\nseparator ,\nnew_line \\n\ncolumns';
comment on function two_columns() is 'HTTP';
comment on function array_of_parts() is 'HTTP';
comment on function picture() is E'HTTP\nContent-Type: image/png\nContent-Disposition: inline; filename="p.png"';
comment on function null_empty() is 'HTTP';
comment on function null_word() is E'HTTP\nresponse_null null';
comment on function null_nothing() is E'HTTP\nresponse_null 204';
comment on function large() is 'HTTP';
"""

PARTS = b"\x00\xffA\n"


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL)


@pytest.mark.parametrize(
    ("routine", "body"),
    [
        ("parts", PARTS),
        ("column-of-parts", PARTS),
        ("raw-parts", PARTS),
        ("no-parts", b""),
        ("null-parts", b""),
        ("first-part", b"\x00\xff"),
        ("no-first-part", b"NULL"),
        ("null-empty", b""),
        ("null-word", b"NULL"),
    ],
)
def test_bytea_rows_are_concatenated(service: Service, routine: str, body: bytes) -> None:
    response = service.get(f"/api/{routine}")
    assert (response.status_code, response.headers["content-type"], response.content) == (200, BYTES, body)


def test_null_bytea_can_be_204(service: Service) -> None:
    assert answer(service.get("/api/null-nothing")) == (204, None, "")


def test_bytea_is_hex_text_beside_other_columns_and_in_arrays(service: Service) -> None:
    assert answer(service.get("/api/two-columns")) == (200, JSON, '[{"n":1,"part":"\\\\x00ff"}]')
    assert answer(service.get("/api/array-of-parts")) == (200, JSON, '[["\\\\x00ff"]]')


def test_comment_sets_headers_of_a_bytea_response(service: Service) -> None:
    response = service.get("/api/picture")
    assert response.headers["content-type"] == "image/png"
    assert response.headers["content-disposition"] == 'inline; filename="p.png"'
    assert response.content == b"\x89PNG"


def test_many_bytea_rows_are_streamed(service: Service) -> None:
    response = service.get("/api/large")
    assert "content-length" not in response.headers
    expected = b"".join(bytes([number % 256]) * 10000 for number in range(3000))
    assert hashlib.sha256(response.content).digest() == hashlib.sha256(expected).digest()
