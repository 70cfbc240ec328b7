"""Convert the values of a request into the arguments of a call."""
