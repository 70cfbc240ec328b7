"""Server-sent events as data: what an event is, who may see it, and how it is written."""
