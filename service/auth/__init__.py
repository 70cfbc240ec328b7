"""Sign-in, sign-out, sessions, and authorization: who may call an endpoint."""
