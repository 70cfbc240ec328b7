from collections.abc import Callable

def shape_of(query: str, is_operation: Callable[[str], bool] | None = None) -> tuple[str, tuple[str, ...]] | None:
    """Return a query string with marks in place of values, and these values in order.

    `core.postgrest.request.shapes.shape_of` is the slow twin of this function, and says which values these are.
    """
