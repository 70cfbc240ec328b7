"""Which of the routines behind one route a request means (routing-16 to routing-19). Pure: keys in, index out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rowcall.core.endpoint.endpoint import Endpoint, EndpointParameter
from rowcall.core.errors.diagnostics import Diagnostic


@dataclass(frozen=True, slots=True)
class Candidate:
    """What the choice needs to know of an endpoint."""

    names: frozenset[str]
    """API names of all request values."""
    required: frozenset[str]
    """Those that neither the path nor a default can fill."""
    total: int
    """Number of request values; each attribute of a composite counts."""
    groups: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Name of a composite parameter, by which an object gives all its fields → their names."""

    @classmethod
    def of(cls, parameters: Sequence[EndpointParameter]) -> Candidate:
        return cls(
            frozenset(parameter.api_name for parameter in parameters),
            frozenset(parameter.api_name for parameter in parameters if _is_required(parameter)),
            len(parameters),
            _groups(parameters),
        )

    def spread(self, keys: frozenset[str]) -> frozenset[str]:
        """Keys of single values, where an object stands for those of its composite."""
        objects = keys & self.groups.keys()
        return (keys - objects).union(*(self.groups[key] for key in objects)) if objects else keys

    def hides(self, other: Candidate) -> bool:
        """Asked first, this one is chosen by every request that the other one could answer."""
        return self.total == other.total and self.names == other.names and self.required <= other.required

    def knows(self, keys: frozenset[str]) -> bool:
        return keys <= self.names

    def fits(self, keys: frozenset[str]) -> bool:
        return self.required <= keys <= self.names


def choose(candidates: Sequence[Candidate], keys: Iterable[str], path_count: int) -> int:
    """Index of the candidate to call; 0 is the primary, and the answer when nothing fits.

    `keys` are those of query or body, `path_count` the parameters in the route's template, optional ones included.
    A number that is met exactly decides, as long as the routine can be called with these keys; then whoever can be.
    """
    written = frozenset(keys)
    values = [(candidate, candidate.spread(written)) for candidate in candidates]
    rules: tuple[Callable[[Candidate, frozenset[str]], bool], ...] = (
        # Fitting counts too: a segment that is left out, or repeated as a key, is counted once too often.
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


def hidden(endpoints: Sequence[Endpoint]) -> Iterator[tuple[int, Diagnostic]]:
    """Those of one route that no request reaches, because a later one asks for the same (8, rule 4): their indexes,
    and what is to be said."""
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
    groups: dict[str, set[str]] = {}
    for parameter in parameters:
        if parameter.group is not None:
            groups.setdefault(parameter.group, set()).add(parameter.api_name)
    return {name: frozenset(fields) for name, fields in groups.items()}


def _is_required(parameter: EndpointParameter) -> bool:
    return not (parameter.has_default or parameter.defaulted or parameter.path or parameter.attribute is not None)
