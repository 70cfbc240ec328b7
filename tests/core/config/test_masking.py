"""No secret of a connection string is shown, whatever the form of the string is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.config.output.masking import mask_in_parts, mask_in_text, mask_whole


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Host=a;Password=my pass;Database=d", "Host=a;Password=******;Database=d"),
        ("Host=a,b;Password=x,y;Database=d", "Host=a,b;Password=******;Database=d"),
        ("Host=a;Password='p\\'';w';Database=d", "Host=a;Password=******;Database=d"),
        ('Host=a;Password="p;""w";Database=d', "Host=a;Password=******;Database=d"),
        ("Host=a;Pwd='p;w';Database=d", "Host=a;Pwd=******;Database=d"),
        ("Host=a;SSL Key=k.pem;PSW=x", "Host=a;SSL Key=******;PSW=******"),
        ("Host={HOST};Database={!DB:shop}", "Host=db1;Database=shop"),
        ("Host=a;Password={!SECRET}", "Host=a;Password={!SECRET}"),
        ("Host=a;Password={SECRET}", "Host=a;Password={SECRET}"),
        ("Host=a;Password={!SECRET:open sesame}", "Host=a;Password={!SECRET:******}"),
        ("Host=a;Password=x{SECRET}", "Host=a;Password=******"),
        ("host=a password='x\\' y' dbname=d", "host=a password=****** dbname=d"),
        ("postgresql://me:se@cret@h/db?sslmode=require", "postgresql://me:******@h/db?sslmode=require"),
        ("postgresql://me@h/db?password=x&sslmode=require", "postgresql://me@h/db?password=******&sslmode=require"),
        ("localhost:6379,password=abc,ssl=false", "localhost:6379,password=******,ssl=false"),
        ("Host=a;Password=", "Host=a;Password="),
        ("Host=a;Pasword=x;Pass=y;Pass file=/f", "Host=a;Pasword=******;Pass=******;Pass file=/f"),
        ("host=a pasword=x passfile=/f", "host=a pasword=****** passfile=/f"),
        ("Host=a;Pass word=x;P_W D=y", "Host=a;Pass word=******;P_W D=******"),
        ("embedded:./data", "embedded:./data"),
        ("Host=a;User=\0001\0;Password=\0hidden", "Host=a;User=\0001\0;Password=******"),
        ("Host=a;Password={SECRET} and more;Database=d", "Host=a;Password=******;Database=d"),
        ("postgresql://me:x@h/db?password={SECRET}&user=a@b", "postgresql://me:******@b"),
    ],
)
def test_a_connection_string_is_shown_without_its_secrets(text: str, shown: str) -> None:
    assert mask_in_parts(text, {"HOST": "db1", "SECRET": "hidden"}) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("PGPASSWORD=abc psql -h {HOST} -f a.sql", "PGPASSWORD=****** psql -h db1 -f a.sql"),
        ("PGPASSWORD='a b' psql; echo x", "PGPASSWORD=****** psql; echo x"),
        ("PGPASSWORD={SECRET} psql", "PGPASSWORD={SECRET} psql"),
        ("PGPASSWORD={!SECRET:abc} psql", "PGPASSWORD={!SECRET:******} psql"),
        ("tool --api-key abc --token=x{SECRET} run", "tool --api-key ****** --token=****** run"),
        ("alter role me password 'it is'", "alter role me password ******"),
        ("pg_restore -d postgresql://me:se:cret@h/db a.dump", "pg_restore -d postgresql://me:******@h/db a.dump"),
        ("curl -H 'Authorization: Bearer abc' http://h/", "curl -H 'Authorization: ******' http://h/"),
        ("psql -f a.sql", "psql -f a.sql"),
        ("psql -f \0001\0.sql", "psql -f \0001\0.sql"),
        ("curl -u me:abc http://h", "curl -u me:****** http://h"),
        ("mysql -pabc; psql -p5433 -p 5433", "mysql -p******; psql -p5433 -p 5433"),
        ("redis-cli -h q -a abc ping", "redis-cli -h q -a ****** ping"),
        ("psql {DB} -f a.sql", "psql postgresql://me:******@h/db -f a.sql"),
        ("psql {!DB}/{HOST}", "psql postgresql://me:******@h/db/db1"),
        ("curl -u {CREDENTIALS} -H 'x-token: {SECRET}' http://h", "curl -u me:****** -H 'x-token: {SECRET}' http://h"),
        ("{LINE} --token={SECRET}", "PGPASSWORD=****** psql --token={SECRET}"),
    ],
)
def test_a_command_is_shown_without_its_secrets(text: str, shown: str) -> None:
    variables = {
        "HOST": "db1",
        "SECRET": "hidden",
        "DB": "postgresql://me:hidden@h/db",
        "CREDENTIALS": "me:hidden",
        "LINE": "PGPASSWORD='hid den' psql",
    }
    assert mask_in_text(text, variables) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("abc", "******"),
        ("", ""),
        ("{!JWT_SECRET}", "{!JWT_SECRET}"),
        ("{!JWT_SECRET:}", "{!JWT_SECRET:}"),
        ("{!JWT_SECRET:abc}", "{!JWT_SECRET:******}"),
        ("x{JWT_SECRET}", "******"),
    ],
)
def test_a_secret_value_shows_at_most_its_source(text: str, shown: str) -> None:
    assert mask_whole(text) == shown


secrets = st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S"]), min_size=8).map(
    lambda text: f"§{text}§"
)
FORMS = (
    "Host=h;Password={};Database=d",
    "Database=d;Password={}",
    "host=h password={} dbname=d",
    "postgresql://user:{}@host/d",
    "localhost:6379,password={}",
)


def written(form: str, secret: str) -> str:
    """Quoted as in the form."""
    if form.startswith("host="):
        return form.format("'" + secret.replace("\\", "\\\\").replace("'", "\\'") + "'")
    if "Password=" in form:
        return form.format("'" + secret.replace("'", "''") + "'")
    return form.format(secret.replace(",", ""))


@given(secrets, st.sampled_from(FORMS))
def test_no_password_is_ever_shown(secret: str, form: str) -> None:
    assert "§" not in mask_in_parts(written(form, secret), {})


@given(secrets, st.sampled_from(FORMS))
def test_no_password_of_the_environment_is_ever_shown(secret: str, form: str) -> None:
    assert "§" not in mask_in_parts(form.format("{!PW}"), {"PW": secret})


@given(secrets, st.sampled_from(FORMS))
def test_no_password_of_a_whole_connection_string_in_the_environment_is_ever_shown(secret: str, form: str) -> None:
    assert "§" not in mask_in_parts("{!DATABASE}", {"DATABASE": written(form, secret)})
