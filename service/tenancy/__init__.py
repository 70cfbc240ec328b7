"""Tenant and time zone of a request, which are set for the transaction of its routine only."""
