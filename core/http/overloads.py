"""Select the overload of a route by the keys of a request (routing-16 to routing-19). Pure: keys in, index out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter
from rowcall.core.errors.diagnostics import Diagnostic


@dataclass(frozen=True, slots=True)
class Candidate:
    """The facts of an endpoint of a route that the selection of an overload needs."""

    names: frozenset[str]
    """API names of all request values."""
    required: frozenset[str]
    """API names of the values that have neither a default nor a place in the path."""
    total: int
    """Number of request values; each attribute of a composite counts."""
    groups: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Name of a composite parameter, whose value may be an object with all its fields → names of the fields."""
    reads: Callable[[str], bool] | None = None
    """Whether a key that is not the name of a value has a meaning for this endpoint, such as `format` of an export or a
    member of a merge patch. None: no key has."""

    @classmethod
    def of(cls, parameters: Sequence[EndpointParameter], reads: Callable[[str], bool] | None = None) -> Candidate:
        """Return the candidate for an endpoint with these parameters. Parameters of the path, fields of composites and
        parameters with a default are not required. reads: as the field."""
        return cls(
            frozenset(parameter.api_name for parameter in parameters),
            frozenset(parameter.api_name for parameter in parameters if _is_required(parameter)),
            len(parameters),
            _groups(parameters),
            reads,
        )

    def value_names(self, keys: frozenset[str]) -> frozenset[str]:
        """Return the names of the single values that a request with these keys supplies: without keys that
        `reads` accepts, and with the names of its fields instead of the name of a composite parameter."""
        if self.reads is not None:
            keys = frozenset(key for key in keys if not self.reads(key))
        objects = keys & self.groups.keys()
        return (keys - objects).union(*(self.groups[key] for key in objects)) if objects else keys

    def hides(self, other: Candidate) -> bool:
        """Return whether this candidate, if it is checked first, is selected for each request that fits the other
        one."""
        return self.total == other.total and self.names == other.names and self.required <= other.required

    def knows(self, keys: frozenset[str]) -> bool:
        """Return whether each key is the name of a value of this endpoint."""
        return keys <= self.names

    def fits(self, keys: frozenset[str]) -> bool:
        """Return whether the endpoint can be called with these keys: it knows each of them, and each required one is
        among them."""
        return self.required <= keys <= self.names


def choose(candidates: Sequence[Candidate], keys: Iterable[str], path_count: int) -> int:
    """Return the index of the candidate to call. The rules are tried in order; the first candidate that a rule fits is
    the result. 0: no rule fits any candidate.

    1. The candidate can be called with the keys, and has as many parameters as the request has values.
    2. The candidate can be called with the keys.
    3. The candidate knows all keys, and has as many parameters as the request has values.
    4. The candidate has as many parameters as the request has values.

    candidates: the primary one first. keys: of the query or the body. path_count: number of parameters in the template
    of the route, with optional ones; they count as values of the request.
    """
    written = frozenset(keys)
    values = [(candidate, candidate.value_names(written)) for candidate in candidates]
    rules: tuple[Callable[[Candidate, frozenset[str]], bool], ...] = (
        # The number alone is not enough: an omitted segment, and one that is repeated as a key, is counted once too
        # often.
        lambda candidate, supplied: candidate.total == len(supplied) + path_count and candidate.fits(supplied),
        lambda candidate, supplied: candidate.fits(supplied),
        lambda candidate, supplied: candidate.total == len(supplied) + path_count and candidate.knows(supplied),
        lambda candidate, supplied: candidate.total == len(supplied) + path_count,
    )
    for rule in rules:
        for index, (candidate, supplied) in enumerate(values):
            if rule(candidate, supplied):
                return index
    return 0


def known_keys(parameters: Iterable[Sequence[EndpointParameter]]) -> frozenset[str]:
    """Return the keys that name a value of an endpoint of a route, or a composite parameter. parameters: those of each
    endpoint."""
    values = [value for each in parameters for value in each]
    return frozenset(name for value in values for name in (value.api_name, value.group) if name is not None)


def find_hidden_overloads(endpoints: Sequence[Endpoint]) -> Iterator[tuple[int, Diagnostic]]:
    """Yield index and diagnostic of each endpoint of a route that no request reaches (routing-19).

    The reason is that a later endpoint of the route has the same parameters. endpoints: all of the route, in the order
    of discovery.
    """
    candidates = [Candidate.of(endpoint.parameters) for endpoint in endpoints]
    for index, endpoint in enumerate(endpoints):
        later = range(index + 1, len(endpoints))
        other = next((number for number in later if candidates[number].hides(candidates[index])), None)
        if other is not None:
            name = endpoints[other].routine.identity
            message = (
                f"{endpoint.name} is never called: {name} has the same route and parameters; give one another path"
            )
            yield index, Diagnostic(endpoint.routine.identity, None, message, left_out=1)


def _groups(parameters: Sequence[EndpointParameter]) -> dict[str, frozenset[str]]:
    """Return name of each composite parameter → API names of its fields."""
    groups: dict[str, set[str]] = {}
    for parameter in parameters:
        if parameter.group is not None:
            groups.setdefault(parameter.group, set()).add(parameter.api_name)
    return {name: frozenset(fields) for name, fields in groups.items()}


def _is_required(parameter: EndpointParameter) -> bool:
    return not (parameter.has_default or parameter.defaulted or parameter.path or parameter.attribute is not None)
