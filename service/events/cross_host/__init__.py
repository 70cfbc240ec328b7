"""How events get from host to host. Each host numbers its own; whatever arrives twice is recognised by its number."""
