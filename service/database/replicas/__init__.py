"""Reading from replicas: which there are, how far each of them is, and which one a request may read from."""
