from collections.abc import Callable

PlainParameter = tuple[str, str, bool, str, bool, bool, str | None, bool, bytes | None, bool, bool, bool]

class FastBinder:
    """Fast binder for common requests, created as `FastBinder(*binder.plain)` of a `core.binding.binding.Binder`."""

    def __init__(
        self,
        parameters: tuple[PlainParameter, ...],
        query_null: str,
        timestamps_utc: bool,
        converters: tuple[tuple[Callable[[str], str | None], Callable[[bytes], str | None]], ...] | None = None,
        groups: dict[bytes, dict[bytes, int]] | None = None,
    ) -> None:
        """`parameters`: for each parameter its API name, its `ValueKind`, whether it is an array, the delimiter of its
        elements, whether it is optional, whether a value is bound when it is absent, that value (None: NULL), whether
        it is part of the path, the first characters of the JSON values that it accepts (None: any), whether arrays must
        be JSON arrays, whether null is refused in JSON, and whether a converter converts each value or element.

        converters: for each parameter two functions, which convert texts and JSON values of unusual forms. groups:
        composites whose fields are parameters: name of the composite → member → index of the parameter.
        """

    def bind_query(
        self, query: str, path_values: dict[str, str] | None = None
    ) -> tuple[int, list[bytes | None], bool] | None:
        """Bind a query string, and the decoded values of the path by name. The path takes precedence.

        Returns mask, values and has-NULL like `core.binding.binding.Binding`; None if `core.binding.binding` has to
        bind or refuse the request.
        """

    def bind_body(
        self, body: bytes, path_values: dict[str, str] | None = None
    ) -> tuple[int, list[bytes | None], bool] | None:
        """Bind the object in a JSON body, like `bind_query`."""
