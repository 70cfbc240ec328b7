"""A request in the terms of HTTP → values: query tree, preferences, range, media types and payload."""
