"""Endpoint → its compiled handler: the one list of steps, in order."""
