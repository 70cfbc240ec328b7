"""Run actions of operators, and record each one in the log and, if it is on, in the audit trail."""

from __future__ import annotations

import datetime
import logging
import time
from collections.abc import Iterable
from typing import Any

import orjson
import psycopg

from rowcall.core.auth.commands import number_placeholders
from rowcall.core.errors.problems import Problem
from rowcall.core.operations.audit_trail import AuditTrailOptions
from rowcall.service.console.actions.action import Action, Result, Results, Values
from rowcall.service.console.sources import Sources

log = logging.getLogger("rowcall")

PATH = "/console/api/actions/"


class Actions:
    """The actions of this configuration. Methods are called in threads."""

    def __init__(self, actions: Iterable[Action], sources: Sources, *, allowed: bool) -> None:
        """Create the actions of the console.

        actions: those of this configuration. sources: give the options and the database connection of the audit trail.
        allowed: `Console:AllowActions`; if False, no action is listed or run.
        """
        self._allowed = allowed
        self._actions = {action.name: action for action in actions}
        self._sources = sources

    def list_actions(self) -> dict[str, Any]:
        """Return the actions with their parameters: `allowed` (bool), and `actions`, a list of objects with `name`,
        `meaning`, `required` and `optional` (names of parameters). The list is empty if actions are not allowed."""
        return {
            "allowed": self._allowed,
            "actions": [
                {
                    "name": action.name,
                    "meaning": action.meaning,
                    "required": list(action.required),
                    "optional": list(action.optional),
                }
                for action in self._actions.values()
                if self._allowed
            ],
        }

    def run(self, name: str, values: Values, operator: str, address: str) -> Result | Results:
        """Run an action for an operator and record it, with status 200 or that of its `Problem`; an action that returns
        an iterator is recorded before that is read. Raises `Problem`: 400 for invalid parameters, 403 if actions are
        not allowed, 404 for an unknown one, and any problem that the action raises.

        operator: name for the record. address: of the client; empty for a Unix socket.
        """
        began = time.time()
        try:
            result = self._run(name, values)
        except Problem as problem:
            self._record(name, operator, address, began, problem.status)
            raise
        self._record(name, operator, address, began, 200)
        return result

    def _run(self, name: str, values: Values) -> Result | Results:
        if not self._allowed:
            raise Problem(403, "the console is read-only: Console:AllowActions permits actions")
        action = self._actions.get(name)
        if action is None:
            known = ", ".join(self._actions)
            raise Problem(404, f"there is no action {name[:50]!r} in this configuration; there are {known}")
        action.check(values)
        return action.run(values)

    def _record(self, name: str, operator: str, address: str, began: float, status: int) -> None:
        known = name if name in self._actions else "an unknown action"
        log.info("console: %s by %s responded %d", known, operator, status)
        options = self._sources.options.audit_trail
        if options is None:
            return
        record = {
            "at": datetime.datetime.fromtimestamp(began, datetime.UTC),
            "endpoint": f"POST {PATH}{name if name in self._actions else '*'}",
            "job": None,
            "routine": None,
            "userId": None,
            "userName": operator,
            "impersonatorId": None,
            "impersonatorName": None,
            "scheme": "console",
            "address": address or None,
            "status": status,
            "milliseconds": round((time.time() - began) * 1000, 3),
        }
        try:
            self._sources.run(self._write(options, orjson.dumps([record]).decode()))
        except (Problem, psycopg.Error, OSError) as error:
            log.error("an action of the console is missing in the audit trail: %s", str(error).strip())

    async def _write(self, options: AuditTrailOptions, text: str) -> None:
        sql, takes = number_placeholders(options.command)
        async with self._sources.connector.maintenance_connection() as connection:
            await psycopg.AsyncRawCursor(connection).execute(sql.encode(), [text for _ in takes])
