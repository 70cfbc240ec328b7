"""The request context: the state of one request, its client, and the protocols through which it is answered."""
