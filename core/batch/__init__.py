"""Batches: several requests in one, their form, and references to the results of earlier ones."""
