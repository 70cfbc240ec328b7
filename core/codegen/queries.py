"""Queries in generated TypeScript and JavaScript (`queryable`): the type of filters, functions that write filters, and
iteration over pages."""

from __future__ import annotations

from collections.abc import Iterator

from rowcall.core.codegen.functions import ClientFunction, Reading
from rowcall.core.codegen.options import ClientCodeOptions
from rowcall.core.codegen.typescript import header_lines
from rowcall.core.postgrest.request.grammar import FULL_TEXT, QUANTIFIED, SIMPLE

WHERE = "where"
"""Name of the object with the functions that write filters."""


def has_pages(function: ClientFunction) -> bool:
    """Return whether a function that iterates over the pages of the results can be generated: the endpoint is a GET
    endpoint with `queryable page`, and not only its URL is generated."""
    queryable = function.endpoint.options.queryable
    listed = _page_type(function).endswith("[]") and not function.url_only and function.endpoint.method == "GET"
    return queryable is not None and queryable.page and listed


def _page_type(function: ClientFunction) -> str:
    """Return the type of one page. The response to a call that a STRICT routine skips has no page."""
    return function.result.removesuffix(" | null")


def filter_type(name: str, export: bool) -> str:
    """Return the declaration of the type of filters, which are texts such as `eq.5` and `not.in.(1,2)`. name: of the
    type. export: export it."""
    operators = sorted((*QUANTIFIED, *SIMPLE, *FULL_TEXT, "in", "is", "isdistinct"))
    quantified = (f"{operator}({word})" for operator in sorted(QUANTIFIED) for word in ("any", "all"))
    listed = " | ".join(f'"{operator}"' for operator in (*operators, *quantified))
    return f'{"export " if export else ""}type {name} =\n    `${{"" | "not."}}${{{listed}}}.${{string}}`;\n'


def filter_functions(name: str, filter_name: str, options: ClientCodeOptions) -> Iterator[str]:
    """Yield the source lines of the exported object called `name`, whose functions return filters. filter_name: of the
    type of filters."""
    typed = options.types
    kind = "string | number | bigint | boolean"
    value, values = (f": {kind}", f": readonly ({kind})[]") if typed else ("", "")
    result, text = (f": {filter_name}", ": string") if typed else ("", "")
    cast = f" as {filter_name}" if typed else ""
    yield f"export const {name} = {{"
    for operator in ("eq", "neq", "gt", "gte", "lt", "lte"):
        yield f"    {operator}: (value{value}){result} => `{operator}.${{value}}`,"
    for operator in ("like", "ilike", "match", "imatch"):
        yield f"    {operator}: (pattern{text}){result} => `{operator}.${{pattern}}`,"
    yield f"    in: (values{values}){result} =>"
    yield '        `in.(${values.map(value => `"${String(value).replace(/([\\\\"])/g, "\\\\$1")}"`).join(",")})`,'
    yield f'    isNull: "is.null"{cast},'
    yield f"    not: (filter{result}){result} =>"
    yield f'        (filter.startsWith("not.") ? filter.slice(4) : `not.${{filter}}`){cast}'
    yield "};"


def pages_text(function: ClientFunction, name: str, options: ClientCodeOptions) -> str:
    """Return the source of an exported function called `name`, which iterates over the pages of the results of
    `function`."""
    typed = options.types
    url = function.address()
    if function.export_url:
        url = f"{function.url_name}({'request' if function.address_needs_request else ''})"
    page = _page_type(function)
    returned = f": AsyncGenerator<{page}, void, undefined>" if typed else ""
    cast = f" as {page}" if typed else ""
    skipped = "if (response.status === 204) {\n            return;\n        }\n        "
    no_page = skipped if function.reading is Reading.JSON_OR_NULL else ""
    init = f"init{': RequestInit' if typed else ''} = {{}}"
    taken = f"request{': ' + str(function.request) if typed else ''}, {init}" if function.request else init
    headers, sent = "", "...init"
    if custom := header_lines({}, options):
        headers = f"""const pageHeaders = new Headers({{{", ".join(custom)}}});
        new Headers(init.headers).forEach((value, name) => pageHeaders.set(name, value));
        """
        sent = "...init, headers: pageHeaders"
    return f"""
/**
* The pages of {function.name}, one after the other; each is requested when the loop needs it.
*/
export async function* {name}({taken}){returned} {{
    let url{": string | undefined" if typed else ""} = {url};
    while (url !== undefined) {{
        {headers}const response{": Response" if typed else ""} = await fetch(url, {{method: "GET", {sent}}});
        if (!response.ok) {{
            throw new Error(await response.text());
        }}
        {no_page}yield await response.json(){cast};
        const next = /<([^>]*)>; rel="next"/.exec(response.headers.get("Link") ?? "");
        url = next === null ? undefined : new URL(next[1]{" as string" if typed else ""}, response.url).href;
    }}
}}
"""
