PlainParameter = tuple[str, str, bool, str, bool, bool, str | None, bool]

class FastBinder:
    """The hot twin of `core.binding.binding.Binder`; made with `FastBinder(*binder.plain)`."""

    def __init__(self, parameters: tuple[PlainParameter, ...], query_null: str, timestamps_utc: bool) -> None:
        """`parameters`: for each one API name, `ValueKind` value, is it an array, delimiter of its elements, may it be
        left out, is it bound when absent, with what, is it part of the path."""

    def bind_query(
        self, query: str, path_values: dict[str, str] | None = None
    ) -> tuple[int, list[bytes | None], bool] | None:
        """Mask, values and has-NULL as `core.binding.binding.Binding`, or None: `core.binding.binding` has to
        decide."""

    def bind_body(
        self, body: bytes, path_values: dict[str, str] | None = None
    ) -> tuple[int, list[bytes | None], bool] | None:
        """The same for a JSON body."""
