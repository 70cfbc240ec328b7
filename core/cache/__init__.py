"""Cached responses: the options of configuration and comments, and the rules between them."""
