"""TanStack Query hooks over generated functions (clients-26)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rowcall.core.codegen.functions import ClientFunction
from rowcall.core.codegen.names import free, upper_first
from rowcall.core.codegen.options import HookOptions

_QUERIES = ("GET", "QUERY")


def hooks_text(functions: Sequence[ClientFunction], client: str, options: HookOptions) -> str:
    """Return the text of a hooks module, without the configured header. functions: those that get a hook. client:
    import path of the module with the functions."""
    queries = any(item.endpoint.method in _QUERIES for item in functions)
    mutations = any(item.endpoint.method not in _QUERIES for item in functions)
    imports = [("useQuery", queries), ("useMutation", mutations)]
    imports += [("type UseQueryOptions", queries), ("type UseMutationOptions", mutations)]
    imported = "".join(f"    {name},\n" for name, used in imports if used)
    head = f"""import {{
{imported}}} from "{options.source}";
import * as api from "{client}";
"""
    taken = {"api", "useQuery", "useMutation"}
    return head + "".join(
        "\n"
        + "\n\n".join(_query(item, options, taken) if item.endpoint.method in _QUERIES else _mutation(item, taken))
        + "\n"
        for item in functions
    )


def _types(function: ClientFunction) -> str:
    pascal = upper_first(function.name)
    request = f"type {pascal}Request = Parameters<typeof api.{function.name}>[0];\n" if function.request else ""
    return f"{request}type {pascal}Result = Awaited<ReturnType<typeof api.{function.name}>>;"


def _query(function: ClientFunction, options: HookOptions, taken: set[str]) -> Iterator[str]:
    name, pascal = function.name, upper_first(function.name)
    first = [f'"{options.prefix}"'] if options.prefix else []
    key = ", ".join((*first, f'"{name}"'))
    yield _types(function)
    if options.expose_keys:
        keys = free(f"{name}Keys", taken)
        lines = [f"export const {keys} = {{", f"    all: [{key}] as const,"]
        if function.request:
            lines += [f"    byRequest: (request: {pascal}Request) =>", f"        [{key}, request] as const,"]
        yield "\n".join((*lines, "};"))
        used = f"{keys}.byRequest(request)" if function.request else f"{keys}.all"
    else:
        used = f"[{key}, request] as const" if function.request else f"[{key}] as const"
    request = f"    request: {pascal}Request,\n" if function.request else ""
    yield f"""export function {free(f"use{pascal}", taken)}(
{request}    options?: Omit<
        UseQueryOptions<{pascal}Result>,
        "queryKey" | "queryFn"
    >,
) {{
    return useQuery({{
        queryKey: {used},
        queryFn: () => api.{name}({"request" if function.request else ""}),
        ...options,
    }});
}}"""


def _mutation(function: ClientFunction, taken: set[str]) -> Iterator[str]:
    name, pascal = function.name, upper_first(function.name)
    variables = f"{pascal}Request" if function.request else "void"
    call = f"(request: {variables}) => api.{name}(request)" if function.request else f"() => api.{name}()"
    yield _types(function)
    yield f"""export function {free(f"use{pascal}Mutation", taken)}(
    options?: Omit<
        UseMutationOptions<{pascal}Result, unknown, {variables}>,
        "mutationFn"
    >,
) {{
    return useMutation({{
        mutationFn: {call},
        ...options,
    }});
}}"""
