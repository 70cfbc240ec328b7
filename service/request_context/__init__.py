"""One request on its way through the service: the exchange, its client, and the protocols that answer it."""
