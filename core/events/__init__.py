"""Server-sent events as data: their content, the subscribers who may see them, and their text."""
