"""Tracing of requests as spans of OpenTelemetry."""
