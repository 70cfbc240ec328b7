"""What can go wrong, as data: diagnostics of a start, problems of a request, which failures are tried again."""
