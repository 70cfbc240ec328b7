"""HTTP as pure functions: routes, overloads, forwarded headers, compression."""
