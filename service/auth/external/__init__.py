"""Sign-in through external providers: OAuth 2 and OpenID Connect (external-sign-in-1 to external-sign-in-11)."""
