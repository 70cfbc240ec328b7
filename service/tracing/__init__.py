"""The way of single requests, as spans of OpenTelemetry."""
