"""Sign-in through outside providers: OAuth 2 and OpenID Connect (reference 04, 11)."""
