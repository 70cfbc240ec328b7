"""Plain data and pure functions of endpoints and of all capabilities of the service. No I/O, no asyncio, no
database."""
