"""Pool selection: the pool in which a call runs, learned from the durations of its executions."""

from __future__ import annotations

import logging
import os

import psycopg

from rowcall.ext.driver.connection import ConnectionState
from rowcall.ext.driver.execution import Execution, Script, Statement
from rowcall.service.background import Background
from rowcall.service.database.call import Call
from rowcall.service.database.connector import Connector
from rowcall.service.database.generic_plans import UserNames, generic_plan, is_eligible, read_user_names
from rowcall.service.database.options import DatabaseOptions
from rowcall.service.database.pools.pipelined_pool import PipelinedPool
from rowcall.service.database.pools.pool_assignment import Contention
from rowcall.service.database.session.guarded_statements import GuardedStatements
from rowcall.service.database.watchdog import HELD_UP

log = logging.getLogger("rowcall.database")

WAITED = 16
"""Multiple of the threshold from which a write has probably waited for a lock, or will soon delay others. Shorter
delays mean nothing as long as they are rare (`PoolAssignment` counts them): on busy processors, one call in a hundred
takes four times the threshold, and running alone costs service and server nearly twice the processor time.
"""
PROCESSORS = os.cpu_count() or 1


class PoolSelection:
    """Selects the pool of each call. pools: pipelined, generic-plan and volatile pool. The volatile pool is separate so
    that a write that waits for a lock never delays a read.

    pooler: a transaction pooler is in between, so that no statement can be guarded and no generic plan forced.
    """

    def __init__(
        self,
        options: DatabaseOptions,
        connector: Connector,
        pools: tuple[PipelinedPool, PipelinedPool, PipelinedPool],
        guarded_statements: GuardedStatements,
        contention: Contention,
        background: Background,
        *,
        pooler: bool,
    ) -> None:
        self._options = options
        self._connector = connector
        self._shared, self._generic, self._writes = pools
        self._guarded_statements = guarded_statements
        self._contention = contention
        self._background = background
        self._pooler = pooler
        self._names: UserNames | None = None

    def forget_names(self) -> None:
        """Drop the cached names of user-defined objects, after a change of the schema."""
        self._names = None

    def place(self, call: Call, mask: int) -> tuple[PipelinedPool, Statement] | None:
        """Return the pipelined pool for a call that is assigned to one (`Call.shared`, which callers check), and the
        statement to run there. None: no connection of this pool is open or has the statement yet, so the call runs on a
        dedicated connection. Guarded statements that are missing are prepared in the background.

        mask: of the supplied parameters, as in `Call`. Raises the error of a statement that cannot be built for `mask`.
        """
        if call.volatile:
            pool = self._writes
        else:
            pool = self._generic if mask in call.generic and self._generic.connections else self._shared
        if self._pooler or self.trusts(call):
            return (pool, call.statement(mask)) if pool.connections else None
        statement = call.guarded[pool.number].get(mask)
        if statement is None or statement.admissions < len(pool.connections):
            self.install_guards(call, mask, pool)
            if statement is None or statement.admissions == 0:
                return None
        return pool, statement

    def learn_shared(self, call: Call, mask: int, execution: Execution) -> None:
        """Record a successful run of the statement for this mask in a pipelined pool, which may demote the call."""
        if call.volatile:
            self._learn_write(call, execution)
        elif call.pace.record(execution.seconds, self._contention.factor):
            self.assign(call)
        if mask not in call.checked:
            self._examine(call, mask)

    def learn_failed(self, call: Call, execution: Execution) -> None:
        """Record a failed run in a pipelined pool; a single one that delayed others demotes the call."""
        changed = call.pace.fast and call.pace.record(execution.seconds, self._contention.factor)
        if call.pace.fast and execution.seconds > HELD_UP:
            call.pace.demote()
            changed = True
        if changed:
            self.assign(call)

    def learn_alone(self, call: Call, mask: int, execution: Execution, busy: int) -> None:
        """Record a successful run of the statement for this mask in the dedicated pool, which may move the call to the
        pipelined pool. busy: connections of the dedicated pool in use now.
        """
        call.small = True
        if not self._may_share(call, execution.statement):
            return
        if call.pace.record(execution.seconds, max(self._contention.factor, busy / PROCESSORS)):
            self.assign(call)
        if call.shared and mask not in call.checked:
            self._examine(call, mask)

    def _may_share(self, call: Call, statement: Statement) -> bool:
        """Return whether the call may run in a pipelined pool, apart from its duration. statement: the one that ran."""
        if call.procedure or call.hear is not None or not self._options.pools.sharing or not call.may_share:
            return False
        if self._pooler or self.trusts(call):
            return not call.volatile
        return (
            call.harmless and type(statement) is not Script and (self._options.pools.share_writes or not call.volatile)
        )

    def trusts(self, call: Call) -> bool:
        """Return whether the configuration lets the call share connections because it is declared STABLE or IMMUTABLE,
        although no analysis shows that it has no session effects.
        """
        return self._options.pools.trust_stable and not call.volatile and not call.harmless and not call.procedure

    def _learn_write(self, call: Call, execution: Execution) -> None:
        """Record a run in the volatile pool, also for the size of this pool. The first wait for a lock demotes the
        call; a result that is too large for a pipelined connection moves it to the dedicated pool."""
        self._writes.note(execution.seconds)
        if execution.seconds > WAITED * call.pace.threshold * self._contention.factor:
            call.pace.demote()
        elif (
            not call.pace.record(execution.seconds, self._contention.factor)
            and len(execution.body or b"") <= self._options.shared_limit
        ):
            return
        call.large = len(execution.body or b"") > self._options.shared_limit
        self.assign(call)

    def assign(self, call: Call) -> None:
        """Assign the call to a pipelined pool or to the dedicated pool, as its durations and results say."""
        call.shared = call.pace.fast and not call.large
        if call.shared:
            (self._writes if call.volatile else self._shared).open_missing()

    def install_guards(self, call: Call, mask: int, pool: PipelinedPool) -> None:
        """Install the guarded statement of the call for this mask on the connections of the pool, in the background,
        unless that is being done. Raises the error of a statement that cannot be built for `mask`.
        """
        key = (pool.number, mask)
        if key not in call.installing_guards:
            # Errors of a combination of parameters with which the routine cannot be called are raised here, for the
            # request.
            call.statement(mask)
            call.installing_guards.add(key)
            self._background.start(self._install_guards_on_all(call, mask, pool))

    async def _install_guards_on_all(self, call: Call, mask: int, pool: PipelinedPool) -> None:
        """Install the guarded statement for this mask on one connection of the pool after another, until one fails. If
        the call proves not to be harmless, it leaves the pipelined pool.
        """
        try:
            pool.open_missing()
            for connection in list(pool.connections):
                if connection.state == ConnectionState.READY and not await self._guarded_statements.install_guards(
                    call, mask, pool.number, connection
                ):
                    break
            call.shared = call.shared and call.harmless
        finally:
            call.installing_guards.discard((pool.number, mask))

    def _examine(self, call: Call, mask: int) -> None:
        """Check in the background whether the statement for this mask may run with a generic plan. Callers ask once for
        each statement. Statements of calls that write are not checked.
        """
        call.checked.add(mask)
        if not self._pooler and not call.volatile:
            self._background.start(self._check_generic(call, mask))

    async def _check_generic(self, call: Call, mask: int) -> None:
        """Let the statement for this mask run with a generic plan if its plan is eligible. Errors are only logged."""
        statement = call.statement(mask)
        try:
            async with self._connector.maintenance_connection() as connection:
                # Held locally: a reload may reset the attribute in the meantime.
                names = self._names or await read_user_names(connection)
                self._names = names
                plan = await generic_plan(connection, statement.sql.decode(), statement.count)
        except psycopg.Error as error:
            log.debug("%s: no generic plan: %s", call.label, str(error).strip())
            return
        except Exception as error:
            # The plan is text from the server and may have any form; without it the call runs with custom plans.
            log.warning("%s: the generic plan could not be read: %r", call.label, error)
            return
        if is_eligible(plan, names):
            call.generic.add(mask)
            self._generic.open_missing()
