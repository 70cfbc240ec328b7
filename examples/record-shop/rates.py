"""Serve currency rates, which the shop requests: `python rates.py 8900`."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

RATES = {"EUR": 0.92, "GBP": 0.79, "JPY": 149.5}


class Rates(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        rate = RATES.get(self.path.rpartition("/")[2].upper())
        body = json.dumps({"rate": rate} if rate else {"error": "unknown currency"}).encode()
        self.send_response(200 if rate else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Rates).serve_forever()
