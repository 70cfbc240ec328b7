from rowcall.ext.connection import Connection
from rowcall.ext.request import Request

def offer(connections: list[Connection], depth: int, slow: float, request: Request) -> bool: ...
