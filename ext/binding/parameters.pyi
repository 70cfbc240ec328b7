from collections.abc import Callable

PlainParameter = tuple[str, str, bool, str, bool, bool, str | None, bool, bytes | None, bool, bool]

class FastBinder:
    """The hot twin of `core.binding.binding.Binder`; made with `FastBinder(*binder.plain)`."""

    def __init__(
        self,
        parameters: tuple[PlainParameter, ...],
        query_null: str,
        timestamps_utc: bool,
        converters: tuple[tuple[Callable[[str], str | None], Callable[[bytes], str | None]], ...] | None = None,
        groups: dict[bytes, dict[bytes, int]] | None = None,
    ) -> None:
        """`parameters`: for each one API name, `ValueKind` value, is it an array, delimiter of its elements, may it be
        left out, is it bound when absent, with what, is it part of the path, the first
        characters of the JSON values it takes (None: any), are arrays written as JSON only, is null refused in JSON.
        converters: for each one what converts
        texts, and JSON, of odd forms. groups: composites whose fields are parameters, by name and member."""

    def bind_query(
        self, query: str, path_values: dict[str, str] | None = None
    ) -> tuple[int, list[bytes | None], bool] | None:
        """Mask, values and has-NULL as `core.binding.binding.Binding`, or None: `core.binding.binding` has to
        decide."""

    def bind_body(
        self, body: bytes, path_values: dict[str, str] | None = None
    ) -> tuple[int, list[bytes | None], bool] | None:
        """The same for a JSON body."""
