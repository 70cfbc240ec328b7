"""Resumable uploads over several requests and workers: the protocol tus 1.0.0."""
