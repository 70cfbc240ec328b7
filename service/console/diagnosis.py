"""Warnings of `--validate --strict` and findings of `--audit`, for the running service.

Left out are: whether a start would succeed, which the running service shows; and the search for secrets in generated
documents, which needs the texts of the documents.
"""

from __future__ import annotations

from typing import Any

import psycopg

from rowcall.core.config.checks import configuration_warnings
from rowcall.core.errors.problems import Problem
from rowcall.core.operations.audit import (
    DatabaseFacts,
    Severity,
    database_findings,
    endpoint_findings,
    openness,
)
from rowcall.service.console.sources import Sources
from rowcall.service.options.audit import settings_findings
from rowcall.service.snapshot.access_facts import access_facts, audited_sources
from rowcall.service.snapshot.schema_snapshot import SchemaSnapshot


def diagnosis(sources: Sources) -> dict[str, Any]:
    """Return warnings about the configuration, objects that are left out, and findings about access. Raises `Problem`
    503 if the database cannot be read."""
    snapshot = sources.snapshot()
    facts = sources.run(_facts(sources, snapshot))
    findings = [
        *settings_findings(sources.settings, sources.options),
        *endpoint_findings(snapshot.endpoints, login=sources.options.auth.login),
        *(finding for each in facts for finding in database_findings(each, snapshot.endpoints)),
    ]
    findings.sort(key=lambda finding: list(Severity).index(finding.severity))
    exposed = openness(snapshot.endpoints)
    return {
        "warnings": list(configuration_warnings(sources.settings)),
        "leftOut": [str(reason) for reason in snapshot.left_out],
        "role": facts[0].role.name,
        "endpoints": exposed.count,
        "open": list(exposed.endpoints),
        "findings": [
            {
                "severity": finding.severity.value,
                "code": finding.code,
                "about": finding.about,
                "message": finding.message,
                "remedy": finding.remedy,
            }
            for finding in findings
        ],
    }


async def _facts(sources: Sources, snapshot: SchemaSnapshot) -> list[DatabaseFacts]:
    """Return the facts of the main database, and then of the others where routines were found. Raises `Problem` 503."""
    facts: list[DatabaseFacts] = []
    try:
        for source in audited_sources(snapshot):
            connector = sources.connector if source is None else sources.source_connector(source)
            async with connector.maintenance_connection() as connection:
                facts.append(await access_facts(connection, snapshot, sources.options, source))
    except psycopg.Error as error:
        raise Problem(503, f"the rights in the database cannot be read: {str(error).strip()}") from None
    return facts
