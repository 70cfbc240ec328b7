"""The services that step factories use, and the type of step factories."""
