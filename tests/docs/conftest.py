"""The fixtures of the HTTP tests: a page of the manual is served like anything else."""

from tests.http.conftest import _no_traceback, serve_once

__all__ = ["_no_traceback", "serve_once"]
