"""A proxy with FastAPI and httpx, written as usual: one client, and the body forwarded as a stream."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse

UPSTREAM = os.environ["UPSTREAM"]
LIMITS = httpx.Limits(max_connections=256, max_keepalive_connections=256)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with httpx.AsyncClient(base_url=UPSTREAM, limits=LIMITS, trust_env=False) as client:
        app.state.client = client
        yield


app = FastAPI(lifespan=lifespan)


@app.get("/{path:path}")
async def forward(path: str, request: Request) -> StreamingResponse:
    client: httpx.AsyncClient = request.app.state.client
    response = await client.send(client.build_request("GET", f"/{path}"), stream=True)
    headers = {name: value for name, value in response.headers.items() if name in ("content-type", "content-length")}

    async def body() -> AsyncIterator[bytes]:
        async for chunk in response.aiter_raw():
            yield chunk
        await response.aclose()

    return StreamingResponse(body(), response.status_code, headers)
