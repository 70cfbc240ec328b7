"""Metrics for operators: numbers of all workers together, and the listener that serves them."""
