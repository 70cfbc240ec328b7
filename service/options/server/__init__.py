"""The HTTP side of the configuration: listeners and limits, compression, what browsers and proxies are told."""
