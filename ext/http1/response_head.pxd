cdef enum Framing:
    NO_BODY         # HEAD, 204, 304: what the response says of a length is about no body of its own
    WITH_LENGTH
    CHUNKED
    UNTIL_CLOSE     # HTTP/1.0, which knows no chunks

cdef enum Persistence:
    IMPLIED         # nothing is said: the default of the version
    CLOSE
    KEEP_ALIVE

# The head of a response, and `body` behind it if it is not None.
cdef bytes response_message(int status, headers, Framing framing, long long length, Persistence persistence, bytes body)

# What the application's headers say: whether the connection is to be closed, and the length of the body or -1.
cdef bint says_close(headers) except -1
cdef long long stated_length(headers) except -2
