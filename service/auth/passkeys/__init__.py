"""Sign-in with passkeys (WebAuthn): the endpoints, their commands, and the verification of what a browser sends."""
