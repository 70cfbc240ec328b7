"""A collector of OpenTelemetry logs and traces over HTTP, and of logs over gRPC, with the published classes of the
protocol."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import grpc
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as messages
from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import (
    LogsServiceServicer,
    add_LogsServiceServicer_to_server,
)
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as trace_messages
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass
class Received:
    """All received requests, in order."""

    url: str = ""
    requests: list[tuple[dict[str, str], messages.ExportLogsServiceRequest]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    traces: list[tuple[dict[str, str], trace_messages.ExportTraceServiceRequest]] = field(default_factory=list)

    @property
    def records(self) -> list[tuple[str, str, str]]:
        """Scope, severity and body of each record."""
        return [
            (scope.scope.name, record.severity_text, record.body.string_value)
            for _, request in self.requests
            for resource in request.resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ]

    @property
    def spans(self) -> list[Span]:
        return [
            span
            for _, request in self.traces
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    @property
    def resource(self) -> dict[str, str]:
        attributes = self.requests[0][1].resource_logs[0].resource.attributes
        return {attribute.key: attribute.value.string_value for attribute in attributes}


@contextmanager
def collect_over_http() -> Iterator[Received]:
    received = Received()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            received.paths.append(self.path)
            headers = {name.lower(): value for name, value in self.headers.items()}
            if self.path.endswith("/v1/traces"):
                received.traces.append((headers, trace_messages.ExportTraceServiceRequest.FromString(body)))
                response = trace_messages.ExportTraceServiceResponse().SerializeToString()
            else:
                received.requests.append((headers, messages.ExportLogsServiceRequest.FromString(body)))
                response = messages.ExportLogsServiceResponse().SerializeToString()
            self.send_response(200)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", str(len(response)))
            self.end_headers()
            self.wfile.write(response)

        def log_message(self, *_args: Any) -> None:
            """Do not log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        received.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield received
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def collect_over_grpc() -> Iterator[Received]:
    received = Received()

    class Service(LogsServiceServicer):
        def Export(self, request: Any, context: Any) -> Any:
            received.requests.append((dict(context.invocation_metadata()), request))
            return messages.ExportLogsServiceResponse()

    server = grpc.server(ThreadPoolExecutor(2))
    add_LogsServiceServicer_to_server(Service(), server)  # type: ignore[no-untyped-call]  # is generated without types
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    received.url = f"http://127.0.0.1:{port}"
    try:
        yield received
    finally:
        server.stop(None).wait()
