"""From a finished call to the response: status, header fields, body, formats."""
