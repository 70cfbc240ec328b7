"""Options of sign-in: the authentication schemes, and configuration warnings about them."""
