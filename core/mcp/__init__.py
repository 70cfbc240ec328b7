"""Endpoints and tables as tools of language models (Model Context Protocol): options, tools, and messages."""
