"""`rowcall --test`: run the whole service without a socket, for tests written in SQL."""
