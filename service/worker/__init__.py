"""A worker process: event loop, HTTP server, application."""
