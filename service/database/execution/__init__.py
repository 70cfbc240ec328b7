"""How calls run: on which connections, with what in front of them, and alone."""
