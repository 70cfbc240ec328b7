"""From the values of a request to the arguments of a call."""
