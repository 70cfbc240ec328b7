from rowcall.ext.driver.connection import Connection
from rowcall.ext.driver.request import Request

def offer(connections: list[Connection], depth: int, slow: float, request: Request) -> bool: ...
