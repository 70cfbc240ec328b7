"""What an endpoint is: plain data and pure functions. No I/O, no asyncio, no database."""
