"""Prepares guarded statements: they run only while the analysis of their routine holds
(`core.catalogue.session_effects`).

A routine without session effects needs no reset and may run in a pipelined pool, until its definition is replaced or a
trigger is added to a table that it writes. Its statement is therefore prepared with a guard, and then the definitions
are compared with those that were analysed. Changes before that are found by the comparison, later ones by PostgreSQL
itself, which then refuses the statement before anything of it runs. The call then runs on a dedicated connection, with
a reset, and the statement is prepared and analysed again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from rowcall.core.catalogue.session_effects import Dependencies, dependencies_unchanged, guard
from rowcall.ext.driver.connection import Connection, ConnectionState
from rowcall.ext.driver.execution import Execution, Script, Statement
from rowcall.ext.rendering.codecs import Codecs
from rowcall.ext.rendering.rows import Renderer
from rowcall.service.database.call import Call
from rowcall.service.database.preamble import Values, preceding_settings
from rowcall.service.database.session.marks import MARKS
from rowcall.service.database.statements import numbers

log = logging.getLogger("rowcall.database")

PREPARE_TIMEOUT = 10.0
"""Seconds within which the server must answer."""


class GuardedStatements:
    """Prepares the guarded statements of one database. on_changed: called when a definition differs from the analysed
    one.
    """

    def __init__(self) -> None:
        renderer = Renderer(Codecs(), "scalar", False, False, [])
        self._marks = Statement(next(numbers), MARKS.encode(), 2, renderer, repeatable=True)
        self.on_changed: Callable[[], None] | None = None

    async def install_guards(
        self, call: Call, mask: int, pool: int, connection: Connection, seconds: float = PREPARE_TIMEOUT
    ) -> bool:
        """Prepare the guarded statement of the call with this mask for this pool on the connection, and return whether
        it may run there now. False: that failed, or is not possible yet. If the call cannot be guarded, `call.harmless`
        becomes False.

        pool: index of the pool in `Call.guarded`. seconds: limit for the server's answer. If it passes, the connection
        is drained: it accepts no other execution, and closes when nothing is in flight.
        """
        statement = call.guarded[pool].get(mask)
        if statement is not None and connection.knows(statement):
            return True
        day_first = b"DMY" in connection.parameter_status(b"DateStyle")
        if statement is None:
            statement = self._statement(call, mask, day_first)
            if statement is None:
                call.harmless = False
                return False
            call.guarded[pool][mask] = statement
        order = b"ISO, MDY" if day_first else b"ISO, DMY"
        dependencies = call.session.dependencies
        # A table that is being altered must not block the other executions on this connection.
        settings: Values = [b"DateStyle", order, b"lock_timeout", b"100ms"]
        if call.role is not None:
            settings += [b"role", call.role.encode()]
        execution = Execution(
            self._marks, [_array(dependencies.functions), _array(dependencies.relations)], preceding_settings(settings)
        )
        execution.guarded_to_prepare = statement
        execution.label = call.label
        execution.timeout = seconds
        execution.waiter = waiter = asyncio.get_running_loop().create_future()
        if not connection.submit(execution):
            return False
        await waiter
        return self._judge(call, mask, pool, connection, execution, dependencies)

    def _judge(
        self, call: Call, mask: int, pool: int, connection: Connection, execution: Execution, dependencies: Dependencies
    ) -> bool:
        """Evaluate the preparation of a guarded statement. Return whether the statement may run on the connection. If
        the server cannot prepare the statement (SQLSTATE classes 0A, 22 and 42), or a definition has changed, the
        session is reset after each run of the call from now on; in the latter case, `on_changed` is called. A
        connection that has not answered is drained.

        mask, pool: as for `install_guards`. execution: the preparation, which has read the definition marks.
        dependencies: the functions and relations of the call, with the marks that were analysed.
        """
        statement = execution.guarded_to_prepare
        if execution.error is not None:
            if execution.error.sqlstate[:2] in ("0A", "22", "42"):
                # Something in it cannot be named on this connection.
                log.debug("%s: is not shared: %s", call.label, execution.error.message)
                call.harmless = False
            return False
        if not execution.finished:
            connection.drain("the server has not answered while a statement was prepared")
            return False
        if not execution.succeeded or connection.state == ConnectionState.CLOSED:
            return False
        if not dependencies_unchanged((execution.body or b"").decode("utf-8", "replace"), dependencies):
            log.info("%s: something that it uses has changed; its session is reset until that is read anew", call.label)
            call.harmless = False
            if self.on_changed is not None:
                self.on_changed()
            return False
        if statement is None or call.guarded[pool].get(mask) is not statement:
            return False  # refused by its guard in the meantime
        connection.admit(statement)
        return True

    @staticmethod
    def _statement(call: Call, mask: int, day_first: bool) -> Statement | None:
        """Return the guarded statement of a call with this mask; None: it cannot be guarded. day_first: the connection
        reads dates with the day in front of the month.
        """
        plain = call.statement(mask)
        if type(plain) is Script:
            return None
        text = guard(plain.sql.decode(), call.session.dependencies, usual_day_first=day_first)
        if text is None:
            return None
        return Statement(
            next(numbers), text.encode(), plain.nparams, plain.renderer, plain.repeatable,
            picks=plain.picks, types=plain.types, guarded=True,
        )  # fmt: skip


def _array(oids: tuple[int, ...]) -> bytes:
    """Return the oids as the text of an array."""
    return f"{{{','.join(map(str, oids))}}}".encode()
