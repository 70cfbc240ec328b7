"""`send_mail`: mail out of rows, after the commit, through a real SMTP server."""

from __future__ import annotations

import base64
import hmac
import json
import ssl
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from rowcall.service.installation.script import install_sql
from tests.harness.database import Database
from tests.harness.mail_server import PASSWORD, USER, MailServer
from tests.harness.metrics import admin_of, numbers_of
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create table account (id int primary key, email text unique, name text);
insert into account values (1, 'ana@example.com', 'Ana <b>'), (2, 'ben@example.com', 'Ben');
create function greet(_email text) returns table ("to" text, name text, subject text, text text, html text)
language sql as $$
    select email, name, 'Hello {name}', 'Dear {name},' || chr(10) || '{unknown}', '<p>Dear {name}</p>'
    from account where email = _email
$$;
comment on function greet(text) is 'HTTP POST /greet
allow_anonymous
send_mail';
create function templated(_email text) returns table ("to" text, name text)
language sql as 'select email, name from account where email = _email';
comment on function templated(text) is 'HTTP POST /templated
send_mail template mails/welcome';
create function missing() returns table ("to" text) language sql as $$ select 'ana@example.com' $$;
comment on function missing() is 'HTTP POST /missing
send_mail template none';
create function everything() returns table (
    "to" text[], cc text, bcc text, "from" text, reply_to text, subject text, text text, attachments json)
language sql as $$ select array['Ana Ö <ana@example.com>', 'ben@example.com'], 'cy@example.com', 'dora@example.com',
    'Boss <boss@example.com>', 'answers@example.com', 'Übung', 'Grüße', '[
    {"name": "ä.txt", "type": "text/plain", "content": "aGVsbG8="}, {"name": "b.bin", "content": "AP8="}]'::json $$;
comment on function everything() is 'HTTP POST /everything
send_mail';
create function invalid(_to text, _subject text default 's', _attachments json default null)
returns table ("to" text, subject text, text text, attachments json)
language sql as 'select _to, _subject, $$x$$, _attachments';
comment on function invalid(text, text, json) is 'HTTP POST /invalid
send_mail';
create function many(_count int) returns table ("to" text, subject text, text text)
language sql as $$ select 'ana@example.com', n::text, 'x' from generate_series(1, _count) n $$;
comment on function many(int) is 'HTTP POST /many
send_mail';
create function fails() returns table ("to" text, text text) language plpgsql as $$
begin return query select 'ana@example.com', 'x'; raise exception 'no'; end $$;
comment on function fails() is 'HTTP POST /fails
send_mail';
create function reads() returns table ("to" text) language sql stable as $$ select 'a@example.com' $$;
comment on function reads() is 'HTTP GET /reads
send_mail';
create function addressless() returns table (address text) language sql as $$ select 'a@example.com' $$;
comment on function addressless() is 'HTTP POST /addressless
send_mail';
"""

BOUNCES = """
create function bounced(_body jsonb) returns jsonb language sql as $$
    select rowcall.bounce_mail(_body ->> 'messageId', _body ->> 'reason')
$$;
comment on function bounced(jsonb) is 'HTTP POST /bounces
allow_anonymous
body_parameter_name _body
verify_webhook standard secret provider';
"""
_numbers = count()


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("templates")
    (folder / "mails").mkdir()
    (folder / "mails" / "welcome.txt").write_text("Subject: Welcome, {name}\n\nHello {name}, {to}\n", encoding="utf-8")
    (folder / "mails" / "welcome.html").write_text("<h1>Hello {name}</h1>", encoding="utf-8")
    return folder


@pytest.fixture
def server() -> Iterator[MailServer]:
    server = MailServer()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def installed(database: Database) -> Database:
    database.execute(install_sql() + SQL)
    return database


def settings(server: MailServer, templates: Path, **others: str) -> dict[str, str]:
    return {
        "Service:RequiresAuthorization": "false",
        "Mail:Enabled": "true",
        "Mail:From": "Shop <shop@example.com>",
        "Mail:Host": "127.0.0.1",
        "Mail:Port": str(server.port),
        "Mail:Security": "None",
        "Mail:Templates": str(templates),
        "Mail:Backoff": "100ms",
        **others,
    }


@pytest.fixture
def service(installed: Database, serve_once: Serve, server: MailServer, templates: Path) -> Service:
    installed.execute("delete from rowcall.mail")
    return serve_once(installed, "", settings(server, templates), workers=2)


def accepted(service: Service, path: str, **body: object) -> None:
    response = service.post(path, json=body)
    assert (response.status_code, response.content) == (202, b""), response.text


def errors(database: Database, count: int) -> list[str]:
    sql = "select error from rowcall.mail where state = 'failed' order by created"
    wait_until(lambda: len(database.fetch(sql)) >= count, f"{count} mails have failed", 20)
    return [error for (error,) in database.fetch(sql)]


def test_each_row_is_sent_as_mail(service: Service, server: MailServer, installed: Database) -> None:
    accepted(service, "/greet", email="ana@example.com")
    (message,) = server.wait_for(1)
    assert message["From"] == "Shop <shop@example.com>"
    assert (message["To"], message["Subject"]) == ("ana@example.com", "Hello Ana <b>")
    assert server.recipients == [["ana@example.com"]]
    text, rich = message.get_body(("plain",)), message.get_body(("html",))
    assert text is not None
    assert rich is not None
    assert text.get_content().split() == ["Dear", "Ana", "<b>,", "{unknown}"]
    assert rich.get_content().strip() == "<p>Dear Ana &lt;b&gt;</p>"
    assert message["Auto-Submitted"] == "auto-generated"
    sent = "select state, attempts, message ? 'text', message ->> 'subject' from rowcall.mail"
    wait_until(lambda: installed.fetch(sent) == [("sent", 1, False, "Hello Ana <b>")], "the outcome is stored")
    assert message["Message-ID"] == f"<{installed.value('select id from rowcall.mail')}@example.com>"


def test_the_response_does_not_reveal_whether_there_was_a_row(service: Service, server: MailServer) -> None:
    known = service.post("/greet", json={"email": "ben@example.com"})
    unknown = service.post("/greet", json={"email": "unknown@example.com"})
    volatile = {"date"}
    assert (known.status_code, known.content) == (unknown.status_code, unknown.content) == (202, b"")
    assert {k: v for k, v in known.headers.items() if k not in volatile} == {
        k: v for k, v in unknown.headers.items() if k not in volatile
    }
    server.wait_for(1)


def test_message_templates_are_filled(service: Service, server: MailServer, templates: Path) -> None:
    accepted(service, "/templated", email="ana@example.com")
    (message,) = server.wait_for(1)
    assert message["Subject"] == "Welcome, Ana <b>"
    text, rich = message.get_body(("plain",)), message.get_body(("html",))
    assert text is not None
    assert rich is not None
    assert text.get_content().strip() == "Hello Ana <b>, ana@example.com"
    assert rich.get_content().strip() == "<h1>Hello Ana &lt;b&gt;</h1>"
    (templates / "mails" / "welcome.txt").write_text("Subject: Again\n\nx\n", encoding="utf-8")
    accepted(service, "/templated", email="ben@example.com")
    assert server.wait_for(2)[1]["Subject"] == "Again"
    accepted(service, "/missing")
    service.wait_for_log("POST /missing: a row makes no mail: there is neither none.txt nor none.html in")
    for content, reason in (
        (b"Subject: \xe4", "is not UTF-8 text (byte 10)"),
        (b"Subject: a\0", "has a NUL character"),
    ):
        (templates / "none.txt").write_bytes(content)
        accepted(service, "/missing")
        service.wait_for_log(f"POST /missing: a row makes no mail: {templates / 'none.txt'} {reason}")


def test_all_columns_of_a_row_become_headers_and_parts(service: Service, server: MailServer) -> None:
    accepted(service, "/everything")
    (message,) = server.wait_for(1)
    assert (message["From"], message["Reply-To"]) == ("Boss <boss@example.com>", "answers@example.com")
    assert (message["To"], message["Cc"]) == ("Ana Ö <ana@example.com>, ben@example.com", "cy@example.com")
    assert message["Bcc"] is None
    assert server.recipients == [["ana@example.com", "ben@example.com", "cy@example.com", "dora@example.com"]]
    assert message["Subject"] == "Übung"
    attachments = {part.get_filename(): part for part in message.iter_attachments()}
    assert {name: part.get_content_type() for name, part in attachments.items()} == {
        "ä.txt": "text/plain",
        "b.bin": "application/octet-stream",
    }
    assert attachments["b.bin"].get_content() == b"\x00\xff"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"to": "no address at all"}, "to has an address that is not valid"),
        ({"to": "a@example.com\r\nBcc: b@example.com"}, "to has an address that is not valid"),
        ({"to": "a@[x>]"}, "to has an address that is not valid"),
        ({"to": '"x.org@[@=?utf-8?q?'}, "to has an address that is not valid"),
        ({"to": "a@example.com", "attachments": {"a": 1}}, "attachments is no array of objects"),
        ({"to": "a@example.com", "attachments": [{"name": "x", "content": "%"}]}, "attachments is no array"),
        ({"to": ", ".join(["a@example.com"] * 101)}, "it has more than 100 recipients"),
    ],
)
def test_rows_without_valid_mail_are_not_sent(
    service: Service, server: MailServer, installed: Database, body: dict[str, object], reason: str
) -> None:
    accepted(service, "/invalid", **body)
    service.wait_for_log(f"POST /invalid: a row makes no mail: {reason}")
    assert installed.value("select count(*) from rowcall.mail") == 0


def test_a_subject_cannot_add_headers(service: Service, server: MailServer) -> None:
    accepted(service, "/invalid", to="a@example.com", subject="x\r\nBcc: b@example.com")
    (message,) = server.wait_for(1)
    assert message["Subject"] == "x Bcc: b@example.com"
    assert server.recipients == [["a@example.com"]]


def test_mail_of_a_failed_request_is_not_sent(service: Service, server: MailServer, installed: Database) -> None:
    assert service.post("/fails").status_code == 400
    assert installed.value("select count(*) from rowcall.mail") == 0


def test_mail_is_sent_once_over_few_connections(service: Service, server: MailServer, installed: Database) -> None:
    accepted(service, "/many", count=60)
    messages = server.wait_for(60, 40)
    assert sorted(int(str(message["Subject"])) for message in messages) == list(range(1, 61))
    # Two workers with two connections each.
    assert len(server.sessions) <= 4
    wait_until(
        lambda: installed.value("select count(*) from rowcall.mail where state = 'sent'") == 60, "all are stored", 20
    )
    assert len(server.messages) == 60


def test_temporary_errors_are_retried_and_permanent_ones_are_not(
    service: Service, server: MailServer, installed: Database
) -> None:
    server.refusal = lambda _envelope: "451 try again later" if server.attempts < 3 else None
    accepted(service, "/greet", email="ben@example.com")
    server.wait_for(1)
    wait_until(
        lambda: installed.value("select max(attempts) from rowcall.mail where state = 'sent'") == 3, "it is stored"
    )
    server.refusal = lambda _envelope: "554 spam"
    accepted(service, "/greet", email="ben@example.com")
    assert errors(installed, 1) == ["the mail server answers 554 spam"]
    server.refused_recipients = {"unknown@example.com": "550 no such user"}
    server.refusal = lambda _envelope: None
    accepted(service, "/invalid", to="unknown@example.com")
    assert errors(installed, 2)[1] == "the mail server refuses all recipients (550)"
    accepted(service, "/invalid", to="unknown@example.com, ben@example.com")
    server.wait_for(2)
    service.wait_for_log("the mail server refuses 1 of its recipients")


def test_addresses_with_other_than_ascii_letters(installed: Database, serve_once: Serve, templates: Path) -> None:
    installed.execute("delete from rowcall.mail")
    plain = MailServer(smtputf8=False)
    try:
        service = serve_once(installed, "", settings(plain, templates, **{"Mail:From": "Büro <info@Straße.example>"}))
        mail = {"from": "a@example.com", "to": ["jürgen@bücher.example"], "subject": "s", "text": "x"}
        installed.execute(f"select rowcall.send_mail('{json.dumps(mail)}')")
        assert errors(installed, 1) == [
            "the mail server does not accept addresses with other than ASCII letters before the @ (SMTPUTF8)"
        ]
        accepted(service, "/invalid", to="Jürgen <a@bücher.example>, ben@例え。example")
        (message,) = plain.wait_for(1)
        assert message["From"] == "Büro <info@xn--strae-oqa.example>"
        assert message["To"] == "Jürgen <a@xn--bcher-kva.example>, ben@xn--r8jz45g.example"
        assert plain.recipients == [["a@xn--bcher-kva.example", "ben@xn--r8jz45g.example"]]
        assert message["Message-ID"].endswith("@xn--strae-oqa.example>")
    finally:
        plain.stop()


def test_an_unavailable_mail_server(service: Service, server: MailServer, installed: Database) -> None:
    server.stop()
    accepted(service, "/greet", email="ben@example.com")
    service.wait_for_log("attempt 1 failed: the mail server cannot be reached")
    again = MailServer(port=server.port)
    try:
        again.wait_for(1)
    finally:
        again.stop()


def test_mail_waits_until_an_invalid_name_of_the_server_is_repaired(
    installed: Database, serve_once: Serve, server: MailServer, templates: Path
) -> None:
    installed.execute("delete from rowcall.mail")
    service = serve_once(installed, "", settings(server, templates, **{"Mail:Host": "smtp..example.com"}))
    accepted(service, "/greet", email="ben@example.com")
    service.wait_for_log("attempt 1 failed: the mail server cannot be reached")
    assert installed.value("select count(*) from rowcall.mail where state = 'failed'") == 0
    installed.execute("delete from rowcall.mail")


def test_mails_per_minute_are_limited(
    installed: Database, serve_once: Serve, server: MailServer, templates: Path
) -> None:
    installed.execute("delete from rowcall.mail")
    service = serve_once(installed, "", settings(server, templates, **{"Mail:PerMinute": "3"}))
    accepted(service, "/many", count=8)
    server.wait_for(3)
    assert installed.value("select count(*) from rowcall.mail where attempts = 0") >= 5
    assert len(server.messages) == 3
    installed.execute("delete from rowcall.mail")


@pytest.mark.slow
def test_starttls_and_authentication_are_supported(
    installed: Database, serve_once: Serve, templates: Path, certificate: tuple[Path, Path]
) -> None:
    installed.execute("delete from rowcall.mail")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    server = MailServer(context)
    try:
        signed_in = {"Mail:Security": "StartTls", "Mail:User": USER, "Mail:Password": PASSWORD}
        refusing = serve_once(installed, "", settings(server, templates, **signed_in))
        accepted(refusing, "/greet", email="ben@example.com")
        # The certificate is not one that this machine trusts.
        refusing.wait_for_log("attempt 1 failed: the mail server cannot be reached")
        assert PASSWORD not in refusing.log
        assert server.messages == []
        refusing.stop()
        # An attempt that was given up is repeated when its time is over.
        due = "update rowcall.mail set run_at = clock_timestamp()"
        installed.execute(due)
        # An authority of one's own, and a wrong password, which an operator can correct.
        own = {**signed_in, "Mail:CaFile": str(certificate[0])}
        wrong = serve_once(installed, "", settings(server, templates, **{**own, "Mail:Password": "wrong-one"}))
        wrong.wait_for_log("the mail server answers 535")
        assert "wrong-one" not in wrong.log
        wrong.stop()
        installed.execute(due)
        service = serve_once(installed, "", settings(server, templates, **own))
        assert server.wait_for(1)[0]["To"] == "ben@example.com"
        assert server.encrypted == [True]
        # The mail server does not close connections itself when it stops.
        service.stop()
    finally:
        server.stop()


def test_implicit_tls_is_supported(
    installed: Database, serve_once: Serve, templates: Path, certificate: tuple[Path, Path]
) -> None:
    installed.execute("delete from rowcall.mail")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    server = MailServer(context, at_once=True)
    try:
        others = {"Mail:Security": "Tls", "Mail:CaFile": str(certificate[0])}
        service = serve_once(installed, "", settings(server, templates, **others))
        accepted(service, "/greet", email="ben@example.com")
        assert server.wait_for(1)[0]["To"] == "ben@example.com"
        assert server.encrypted == [True]
        service.stop()
    finally:
        server.stop()


def test_mail_that_fails_or_bounces(
    installed: Database, serve_once: Serve, server: MailServer, templates: Path
) -> None:
    """A final failure is published as a webhook; a bounce that the provider reports by a webhook marks the mail."""
    installed.execute("delete from rowcall.mail")
    secret = base64.b64encode(b"a secret of the mail provider").decode()
    others = {
        "Mail:FailureTopic": "mail.failed",
        "Webhooks:Secrets:provider": secret,
    }
    service = serve_once(installed, BOUNCES, settings(server, templates, **others), workers=2)
    server.refusal = lambda _envelope: "554 spam"
    accepted(service, "/greet", email="ana@example.com")
    failed = "select payload from rowcall.webhook_message where topic = 'mail.failed'"
    wait_until(lambda: installed.fetch(failed), "the failure is published", 20)
    ((payload,),) = installed.fetch(failed)
    assert payload["to"] == ['"Ana <b>" <ana@example.com>'] or payload["to"] == ["ana@example.com"]
    assert payload["reason"] == "the mail server answers 554 spam"
    server.refusal = lambda _envelope: None
    accepted(service, "/greet", email="ben@example.com")
    number = server.wait_for(1)[0]["Message-ID"]

    def report(message_id: str, event: str) -> str:
        body = json.dumps({"messageId": message_id, "reason": "mailbox full"}).encode()
        when = str(int(time.time()))
        signature = base64.b64encode(
            hmac.digest(base64.b64decode(secret), f"{event}.{when}.".encode() + body, "sha256")
        )
        headers = {"webhook-id": event, "webhook-timestamp": when, "webhook-signature": f"v1,{signature.decode()}"}
        response = service.post("/bounces", content=body, headers={"content-type": "application/json", **headers})
        assert response.status_code == 200, response.text
        return response.text

    wait_until(lambda: '"Hello Ben"' in report(number, f"event-{next(_numbers)}"), "the mail is stored as sent")
    state = "select state, error from rowcall.mail where message ->> 'subject' = 'Hello Ben'"
    assert installed.fetch(state) == [("bounced", "mailbox full")]
    assert report("<00000000-0000-0000-0000-000000000000@example.com>", "unknown") == "null"
    assert report("'; drop table account", "hostile") == "null"


def test_mail_is_written_to_a_folder_or_the_log(
    installed: Database, serve_once: Serve, server: MailServer, templates: Path, tmp_path: Path
) -> None:
    installed.execute("delete from rowcall.mail")
    folder = {"Mail:Transport": "Folder", "Mail:Folder": str(tmp_path / "out")}
    service = serve_once(installed, "", settings(server, templates, **folder))
    accepted(service, "/greet", email="ben@example.com")
    wait_until(lambda: list((tmp_path / "out").glob("*.eml")), "the file is there")
    (path,) = (tmp_path / "out").glob("*.eml")
    assert "Subject: Hello Ben" in path.read_text()
    service.stop()
    logged = serve_once(installed, "", settings(server, templates, **{"Mail:Transport": "Log"}))
    accepted(logged, "/greet", email="ben@example.com")
    logged.wait_for_log("to ben@example.com: Hello Ben")
    logged.wait_for_log("Dear Ben,")


@pytest.mark.slow
def test_metrics_count_mail(installed: Database, serve_once: Serve, server: MailServer, templates: Path) -> None:
    installed.execute("delete from rowcall.mail")
    server.refusal = lambda envelope: "554 spam" if b"Ana" in (envelope.content or b"") else "451 later"
    metrics = {"Metrics:Enabled": "true", "Admin:Url": "http://127.0.0.1:0", "Mail:Backoff": "1 hour"}
    service = serve_once(installed, "", settings(server, templates, **metrics), workers=2)
    accepted(service, "/greet", email="ana@example.com")
    accepted(service, "/greet", email="ben@example.com")
    with admin_of(service) as client:
        wait_until(
            lambda: (
                numbers_of(client).of("rowcall_mail", state="waiting") == 1
                and numbers_of(client).of("rowcall_mail", state="failed") == 1
            ),
            "the metrics count the mail in the database",
            40,
        )
    installed.execute("delete from rowcall.mail")


def test_mail_of_sql(service: Service, server: MailServer, installed: Database) -> None:
    mail = {"from": "a@example.com", "to": ["b@example.com"], "subject": "SQL", "text": "x"}
    installed.execute(f"select rowcall.send_mail('{json.dumps(mail)}')")
    assert server.wait_for(1)[0]["Subject"] == "SQL"
    installed.execute("select rowcall.send_mail('{\"to\": 7}')")
    assert errors(installed, 1)[0].startswith("it is no valid message")
    installed.execute(f"select rowcall.send_mail('{json.dumps({**mail, 'to': ['b@[x>]']})}')")
    assert errors(installed, 2)[1] == "it has an address that is not valid"


def test_impossible_send_mail_annotations_are_reported(service: Service) -> None:
    assert "GET /reads: send_mail is not possible: a GET must not change anything" in service.log
    assert (
        "POST /addressless: send_mail is not possible: its result has no column to; the endpoint is left out"
        in service.log
    )
    assert service.get("/reads").status_code == 404
