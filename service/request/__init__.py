"""From the bytes of a request to a call that can begin: body, headers, values, validation, preamble."""
