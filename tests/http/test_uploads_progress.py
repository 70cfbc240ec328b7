"""Subscribers hear of an upload while it runs: its row commands' notices, its routine's, and how much has arrived
(events-4 to events-6)."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.harness.browser import browser, needs_browser
from tests.harness.database import Database
from tests.harness.events import EventStream
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.http.conftest import Serve

SCHEMA = """
create function heard_line(_number int, _cells text[]) returns int language plpgsql as $$ begin
    raise info 'row %', _number;
    return _cells[1]::int;
end $$;
create function up_heard(_files json) returns json language plpgsql as $$ begin
    raise info 'the routine runs';
    return _files;
end $$;
comment on function up_heard(json) is 'HTTP POST
sse progress
upload for csv
param _files is upload metadata
row_command = select heard_line($1, $2)';
create function up_settled(_files json) returns json language plpgsql as $$ begin
    raise info 'the routine runs';
    return _files;
end $$;
comment on function up_settled(json) is 'HTTP POST
sse progress
sse_after_commit
upload for csv
param _files is upload metadata
row_command = select heard_line($1, $2)';
create function up_counted(_files json) returns json language sql as 'select _files';
comment on function up_counted(json) is 'HTTP POST
sse progress
upload_progress
upload for large_object
param _files is upload metadata';
create function up_in_pieces(_files json) returns json language sql as 'select _files';
comment on function up_in_pieces(json) is 'HTTP POST
sse progress
upload_progress
resumable
upload for large_object
param _files is upload metadata';
create function up_without_stream(_files json) returns json language sql as 'select _files';
comment on function up_without_stream(json) is 'HTTP POST
upload_progress
upload for large_object';
create function form() returns text language sql immutable return $$<!doctype html>
<form id="form"><input type="file" name="file" multiple> <button>Send</button></form>
<progress id="arrived" value="0" max="1"></progress> <ul id="words"></ul> <p id="said"></p>
<script>
document.getElementById("form").onsubmit = event => {
  event.preventDefault();
  const id = crypto.randomUUID();
  const events = new EventSource("up-counted/progress?" + id);
  events.onmessage = event => {
    const progress = JSON.parse(event.data);
    arrived.value = progress.received / progress.of;
    words.append(Object.assign(document.createElement("li"), { textContent: event.data }));
  };
  events.onopen = async () => {
    const sent = { method: "POST", body: new FormData(form), headers: { "X-NpgsqlRest-ID": id } };
    const answer = await (await fetch("up-counted", sent)).json();
    said.textContent = answer.map(one => `${one.fileName}: ${one.status}`).join(", ");
  };
};
</script>
$$;
comment on function form() is 'HTTP GET
Content-Type: text/html; charset=utf-8';
"""


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SCHEMA, {"Service:UploadOptions:Enabled": "true"}, workers=2)


def test_notices_of_rows_and_of_the_routine_are_streamed(service: Service) -> None:
    with EventStream(service, "/api/up-heard/progress?job-1") as stream:
        headers = {"X-NpgsqlRest-ID": "job-1"}
        assert service.post("/api/up-heard", files={"f": ("a.csv", b"7\n8\n")}, headers=headers).status_code == 200
        stream.wait_for("row 1", "row 2", "the routine runs")


def test_notices_deferred_to_the_commit_are_streamed_only_after_it(service: Service) -> None:
    with EventStream(service, "/api/up-settled/progress") as stream:
        problem(service.post("/api/up-settled", files={"f": ("a.csv", b"7\nx\n")}), 400)
        assert service.post("/api/up-settled", files={"f": ("a.csv", b"7\n8\n9\n")}).status_code == 200
        stream.wait_for("row 1", "row 2", "row 3", "the routine runs")


def test_received_bytes_are_streamed(service: Service) -> None:
    with EventStream(service, "/api/up-counted/progress") as stream:
        response = service.post("/api/up-counted", files={"f": ("a", b"x" * 3_000_000)})
        size = int(response.request.headers["content-length"])
        stream.wait(lambda: stream.messages and json.loads(stream.messages[-1])["received"] == size, "the last word")
        received = [json.loads(message)["received"] for message in stream.messages]
        assert received == sorted(set(received))
        assert {json.loads(message)["of"] for message in stream.messages} == {size}


def test_resumable_uploads_stream_the_received_bytes_of_the_file(service: Service) -> None:
    tus = {"tus-resumable": "1.0.0", "X-NpgsqlRest-ID": "job-2"}
    begun = service.post("/api/up-in-pieces", headers={**tus, "upload-length": "3000000"})
    url = begun.request.url.join(begun.headers["location"])
    piece = {**tus, "content-type": "application/offset+octet-stream"}
    with EventStream(service, "/api/up-in-pieces/progress?job-2") as stream:
        for begins, ends in ((0, 1_200_000), (1_200_000, 3_000_000)):
            headers = {**piece, "upload-offset": str(begins)}
            assert service.client.patch(url, headers=headers, content=b"x" * (ends - begins)).status_code == 204
            word = f'{{"received":{ends},"of":3000000}}'
            stream.wait(lambda word=word: word in stream.messages, word)  # type: ignore[misc]
        received = [json.loads(message)["received"] for message in stream.messages]
        assert received == sorted(set(received))


def test_progress_without_a_stream_is_logged_at_the_start(service: Service) -> None:
    service.wait_for_log("upload_progress has no effect without sse")


@pytest.fixture(scope="module")
def page(service: Service) -> Iterator[Page]:
    with browser() as opened:
        page = opened.new_page()
        page.goto(f"{service.url}/api/form")
        yield page


@pytest.mark.slow
@needs_browser
def test_a_form_with_several_files_shows_the_progress(page: Page) -> None:
    files = [{"name": f"{n}.bin", "mimeType": "application/octet-stream", "buffer": b"x" * 400_000} for n in range(3)]
    page.set_input_files("[name=file]", files)  # type: ignore[arg-type]
    page.click("text=Send")
    expect(page.locator("#said")).to_have_text("0.bin: Ok, 1.bin: Ok, 2.bin: Ok")
    expect(page.locator("#words li").last).to_contain_text('{"received":1200')
    page.wait_for_function("arrived.value === 1")
