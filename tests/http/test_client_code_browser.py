"""Generated JavaScript in pages of a real browser: one with the origin of the service, and one with another origin
(docs/internals/behaviour/clients.md). The calls are those of test_client_code.py; uploads, event streams and
cookies need a browser."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import FilePayload, Page

from tests.harness.browser import TIMEOUT, browser, needs_browser
from tests.harness.database import Database
from tests.harness.postgres import free_port
from tests.http.conftest import Serve
from tests.http.test_client_code import ENCODED_ANSWERS, PLAIN, P, check_answers
from tests.http.test_client_code import SQL as ROUTINES

pytestmark = [needs_browser, pytest.mark.slow]

SQL = (
    ROUTINES
    + """
create table heard (n int);
create function note_heard() returns void language sql as 'insert into heard values (1)';
comment on function note_heard() is 'HTTP';
create function forget_heard() returns void language sql as 'delete from heard';
comment on function forget_heard() is 'HTTP';
create function call_out(_word text) returns text language plpgsql as $$ begin
    for number in 1 .. 1200 loop
        raise info '%', _word;
        exit when exists (select from heard);
        perform pg_sleep(0.05);
    end loop;
    return _word;
end $$;
comment on function call_out(text) is 'HTTP POST
sse';
create function count_files(_meta json default null) returns json language plpgsql as $$ begin
    raise info '% files', json_array_length(_meta);
    return _meta;
end $$;
comment on function count_files is 'HTTP
upload
param _meta is upload metadata
sse';
create function keep_files() returns void language sql as '';
comment on function keep_files is 'HTTP
upload';
create function refuse_files() returns json language plpgsql as $$ begin raise exception 'there is no room'; end $$;
comment on function refuse_files is 'HTTP
upload';
create function refuse_files_plainly() returns json language plpgsql as $$ begin
    raise exception 'there is no room';
end $$;
comment on function refuse_files_plainly is 'HTTP
upload
tsclient_status_code = true';
create function who(_user_id text default null) returns text language sql stable as 'select _user_id';
comment on function who is 'HTTP GET
authorize
user_parameters
tsclient_status_code = true';
create function sign_out() returns void language sql as '';
comment on function sign_out is 'HTTP
logout';
"""
)
PAGE = '<!doctype html><link rel="icon" href="data:,"><input type="file" multiple>'


@pytest.fixture(scope="module")
def origins(database: Database, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Provide the origin of the service, and another one with the same pages."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "index.html").write_text(PAGE, encoding="utf-8")
    port, other = free_port(), free_port()
    origins = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{other}"
    database.execute(SQL)
    settings = {
        **PLAIN,
        "Urls": ";".join(origins),
        P + "FilePath": str(folder / "{0}Api.ts"),
        P + "SkipTypes": "true",
        P + "IncludeHost": "true",
        P + "IncludeParseUrlParam": "true",
        P + "IncludeParseRequestParam": "true",
        P + "XsrfTokenHeaderName": "X-Xsrf",
        P + "CustomHeaders:X-Version": '"1.4"',
        "StaticFiles:Enabled": "true",
        "StaticFiles:RootPath": str(folder),
        "Auth:CookieAuth": "true",
        "Auth:TrustedOrigins:0": origins[1],
        "Cors:Enabled": "true",
        "Cors:AllowedOrigins:0": origins[1],
        "Cors:AllowCredentials": "true",
        **{f"Cors:AllowedMethods:{n}": item for n, item in enumerate(("GET", "POST", "PUT", "DELETE"))},
        **{
            f"Cors:AllowedHeaders:{n}": item
            for n, item in enumerate(("Content-Type", "X-NpgsqlRest-ID", "X-Version", "X-Xsrf"))
        },
    }
    serve(database, "", settings, port=port, workers=2)
    return origins


@pytest.fixture(scope="module")
def opened() -> Iterator[Callable[[str], Page]]:
    with browser() as program:

        def visit(url: str) -> Page:
            """Open a page in a separate browser context."""
            context = program.new_context()
            context.set_default_timeout(TIMEOUT)
            page = context.new_page()
            page.goto(url)
            return page

        yield visit


@pytest.fixture(params=[0, 1], ids=["same origin", "other origin"])
def page(request: pytest.FixtureRequest, origins: tuple[str, str], opened: Callable[[str], Page]) -> Iterator[Page]:
    """Provide a page that has the client as `api`."""
    result = opened(origins[request.param])
    result.evaluate("import('/publicApi.js').then(api => { window.api = api; })")
    yield result
    result.context.close()


def run(page: Page, code: str) -> Any:
    """Return the result of the body of an asynchronous function. Cookies are sent to the other origin, too."""
    return page.evaluate(f"""async () => {{
        const input = document.querySelector("input");
        const cookies = request => ({{...request, credentials: "include"}});
        const asIs = url => url;
        const late = new Promise((_, reject) => setTimeout(() => reject(new Error("it takes too long")), {TIMEOUT}));
        return await Promise.race([late, (async () => {{ {code}
        }})()]);
    }}""")


def test_page_receives_values_of_the_database(page: Page, origins: tuple[str, str], database: Database) -> None:
    database.execute("delete from depot")
    check_answers(json.loads(run(page, f"return {ENCODED_ANSWERS};")), origins[0])


def test_custom_headers_are_sent(page: Page) -> None:
    """A header of the configuration causes a preflight to another origin; a GET has no content type."""
    with page.expect_request(
        lambda request: request.url.endswith("/get-names") and request.method == "GET"
    ) as requested:
        assert run(page, "return await api.getNames();") == ["a", "b"]
    sent = requested.value.all_headers()
    assert (sent["x-version"], sent.get("content-type")) == ("1.4", None)


def test_session_cookie_is_stored_and_sent(page: Page) -> None:
    who = "const { status, response } = await api.who(asIs, cookies); return [status, response];"
    assert run(page, who)[0] == 401
    assert run(page, 'return await api.signIn({name: "kiri"}, asIs, cookies);') == ""
    assert run(page, who) == [200, "7"]
    assert run(page, "return await api.signOut(asIs, cookies) === undefined;")
    assert run(page, who)[0] == 401


def test_files_are_uploaded_with_progress(page: Page) -> None:
    size = 3_000_000
    files: list[FilePayload] = [
        {"name": "a & ж.txt", "mimeType": "text/plain", "buffer": b"x" * size},
        {"name": "small.txt", "mimeType": "text/plain", "buffer": b"y"},
    ]
    page.locator("input").set_input_files(files)
    with page.expect_request(lambda item: "/import-manifest" in item.url and item.method == "POST") as requested:
        output = run(
            page,
            """
            const steps = [];
            const step = (loaded, total) => steps.push([loaded, total]);
            const answer = await api.importManifest(input.files, asIs, xhr => xhr, step, "token");
            return {answer, steps};""",
        )
    assert requested.value.all_headers()["x-xsrf"] == "token"
    assert [(item["fileName"], item["size"], item["status"]) for item in output["answer"]] == [
        ("a & ж.txt", size, "Ok"),
        ("small.txt", 1, "Ok"),
    ]
    loaded, total = output["steps"][-1]
    assert loaded == total > size
    assert [step[0] for step in output["steps"]] == sorted(step[0] for step in output["steps"])


def test_failed_uploads_report_the_reason(page: Page) -> None:
    page.locator("input").set_input_files({"name": "a.txt", "mimeType": "text/plain", "buffer": b"x"})
    assert run(page, "return await api.keepFiles(input.files) === undefined;")
    plainly = run(page, "return await api.refuseFilesPlainly(input.files);")
    assert (plainly["status"], plainly["response"], plainly["error"]["title"]) == (400, [], "there is no room")
    caught = "return await {0}.then(() => 'fulfilled', problem => problem.statusText ?? problem.message);"
    assert "there is no room" in run(page, caught.format("api.refuseFiles(input.files)"))
    assert run(page, caught.format("api.refuseFiles(null)")) == "No files to upload"
    nowhere = "api.refuseFiles(input.files, () => 'http://127.0.0.1:1/')"
    assert run(page, caught.format(nowhere)) == "Network error occurred"
    assert "fetch" in run(page, caught.format("api.getCount(() => 'http://127.0.0.1:1/')"))


@pytest.mark.parametrize(
    ("ending", "text"),
    [("request.timeout = 100;", "Request timed out"), ("setTimeout(() => request.abort(), 100);", "Request aborted")],
)
def test_an_upload_settles_if_it_ends_without_a_response(page: Page, ending: str, text: str) -> None:
    page.route("**/keep-files", lambda _route: None)
    page.locator("input").set_input_files({"name": "a.txt", "mimeType": "text/plain", "buffer": b"x"})
    upload = f"api.keepFiles(input.files, asIs, request => {{ {ending} return request; }})"
    late = "new Promise(resolve => setTimeout(resolve, 5000, {statusText: 'not settled'}))"
    caught = f"{upload}.catch(problem => problem)"
    assert run(page, f"return (await Promise.race([{caught}, {late}])).statusText;") == text


@pytest.mark.parametrize(
    ("status", "body", "output"),
    [
        (413, "<h1>Content Too Large</h1>", "SyntaxError"),
        (502, "", {"status": 502, "response": [], "error": None}),
        (200, "<h1>Sign in to this network</h1>", "SyntaxError"),
    ],
)
def test_upload_settles_if_the_response_is_not_json(page: Page, status: int, body: str, output: object) -> None:
    """As that of a reverse proxy in front of the service."""
    page.route(
        "**/refuse-files-plainly",
        lambda route: route.fulfill(status=status, body=body, headers={"access-control-allow-origin": "*"}),
    )
    page.locator("input").set_input_files({"name": "a.txt", "mimeType": "text/plain", "buffer": b"x"})
    assert run(page, "return await api.refuseFilesPlainly(input.files).catch(error => error.name);") == output


def test_events_of_a_call_arrive_while_it_runs(page: Page) -> None:
    """The routine continues until the page has received one of its events and reports that by another call."""
    output = run(
        page,
        """
        await api.forgetHeard();
        const words = new Set();
        let noted;
        const hear = word => { words.add(word); noted ??= api.noteHeard(); };
        const answer = await api.callOut({word: "ahoy"}, hear);
        await noted;
        return [answer, [...words]];""",
    )
    assert output == ["ahoy", ["ahoy"]]


def test_event_stream_can_be_opened_without_a_call(page: Page) -> None:
    """The id of its execution distinguishes an upload from others."""
    page.locator("input").set_input_files({"name": "a.txt", "mimeType": "text/plain", "buffer": b"x"})
    output = run(
        page,
        """
        const source = api.createCountFilesEventSource("mine");
        await new Promise((resolve, reject) => { source.onopen = resolve; source.onerror = reject; });
        const heard = new Promise(resolve => { source.onmessage = event => resolve(event.data); });
        const files = await api.countFiles(input.files, undefined, "mine");
        const word = await heard;
        source.close();
        return [files.length, word];""",
    )
    assert output == [1, "1 files"]
