"""Writes the head of an HTTP/1.1 response."""


# How the client finds the end of the body.
cdef enum Framing:
    NO_BODY         # HEAD, 204, 304: there is no body; a Content-Length of the application is sent, but not with 204
    WITH_LENGTH
    CHUNKED
    UNTIL_CLOSE     # the end of the connection: for HTTP/1.0, which knows no chunks

# What the header Connection says.
cdef enum Persistence:
    IMPLIED         # the header is omitted: the default of the HTTP version holds
    CLOSE
    KEEP_ALIVE

# Returns the head of a response, followed by `body` if that is not None. status: 100 to 599. headers: (name, value)
# pairs of str that `field_problem` has accepted; names are sent in lower case, values as UTF-8. length: bytes of the
# body, used WITH_LENGTH only.
cdef bytes response_message(int status, headers, Framing framing, long long length, Persistence persistence, bytes body)

# Returns whether the application's headers, as of `response_message`, contain `Connection: close`.
cdef bint says_close(headers) except -1
# Returns the Content-Length of the application's headers, as of `response_message`; -1 without that header.
cdef long long stated_length(headers) except -2
