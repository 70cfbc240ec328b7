from collections.abc import Callable

from rowcall.ext.rendering.body_writer import BodyWriter

class DecryptingWriter(BodyWriter):
    """Opens values before `inner` writes them.

    openers: one for each column, None where values stay as they are. An opener gets the text of a value, never NULL,
    and gives what stands for it, the same object for what stays. It must not raise.
    """

    def __init__(self, inner: BodyWriter, openers: tuple[Callable[[bytes], bytes] | None, ...]) -> None: ...
