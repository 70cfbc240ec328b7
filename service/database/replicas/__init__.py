"""Reading from replicas: monitoring of the servers, and the choice of a replica for a request."""
