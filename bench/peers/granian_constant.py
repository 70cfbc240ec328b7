"""granian with constant responses: the limit of the HTTP side alone.

`BENCH_RESPONSES` names a JSON file `{"path?query": "body"}`. The body of a POST is read and dropped, because a service
has to read it too.
"""

import json
import os
from pathlib import Path
from typing import Any

HEADERS = [("content-type", "application/json")]
RESPONSES = {
    target: body.encode() for target, body in json.loads(Path(os.environ["BENCH_RESPONSES"]).read_text("utf-8")).items()
}


class Application:
    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        query = scope.query_string
        body = RESPONSES[f"{scope.path}?{query}" if query else scope.path]
        if scope.method == "POST":
            await protocol()
        protocol.response_bytes(200, HEADERS, body)


app = Application()
