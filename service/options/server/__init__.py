"""Options of the HTTP server: listeners, limits, compression, and headers for browsers and proxies."""
