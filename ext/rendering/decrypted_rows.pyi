from collections.abc import Callable

from rowcall.ext.rendering.body_writer import BodyWriter

class DecryptingWriter(BodyWriter):
    """Decrypts values before `inner` writes them.

    openers: for each column a function, or None if its values are written unchanged. It is called with the text of a
    value, never with NULL, and returns the text to write: the same object for an unchanged value. It must not raise.
    """

    def __init__(self, inner: BodyWriter, openers: tuple[Callable[[bytes], bytes] | None, ...]) -> None: ...
