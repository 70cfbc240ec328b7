"""Second factor: what follows the first one at a login, and the endpoints with which users set it up and prove it."""
