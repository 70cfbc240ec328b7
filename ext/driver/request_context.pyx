"""Carries requests through their steps by callbacks.

Steps run by callbacks and not as a coroutine: a request that the shared lane answers costs no task, no future and no
turn of the event loop besides the two that bring it in and the result back. Which steps those are is none of this
module's business.
"""

from rowcall.ext.driver.execution cimport Execution, ExecutionState, now

cdef object NO_VALUES = {}


cdef class RequestContext:
    """What the steps of one request share, and how far it has come.

    values: texts of the path's parameter segments.
    body: read once, by whoever needs it first (`service.request.body`).
    arguments: texts for the parameters in `mask`.
    request: the run of the routine, under way or finished.
    comment_headers: the header lines of the comment, once the caller has been let in.
    user: who is calling (`core.auth.claims.User`); None for nobody, and where no step has asked.
    ticket: what the result is waited for with by others; None where nobody else wants it.
    endings: called with the exchange, and its error or None, once nothing follows.
    answered: set by a step that has sent the response itself; nothing follows.
    deadline: time of the event loop at which nobody waits for the answer any more; 0: none.
    task: in which an awaitable step runs, for whoever has to cancel it.
    """

    def __cinit__(self, scope, protocol):
        self.scope = scope
        self.protocol = protocol
        self.values = NO_VALUES
        self.mask = 0
        self.arguments = []
        self.steps = ()

    cpdef follow(self, tuple steps):
        """Goes on with these steps instead of what was left, from a step that has been awaited."""
        self.steps = steps
        self.next_step = 0

    cpdef skip(self, Py_ssize_t count):
        """Leaves out the next steps."""
        self.next_step += count

    cpdef at_end(self, ending):
        """Has `ending(exchange, error)` called when the last step is done or one has failed."""
        if self.endings is None:
            self.endings = []
        self.endings.append(ending)


cdef class BodyArrival:
    """The body of a request on its way: what a step waits for without a task.

    future: calls back with itself once it has the bytes. reading, scopes: sets that hold this, and the scope of its
    request, until then. refusal(arrival, error, exchange): what the request fails with when there is no body.
    unseen: bytes that are announced, of which is seen only that they are whole. late: whoever watches has ended it.
    """

    def __init__(self, RequestContext context not None, future, set reading not None, set scopes not None, refusal,
                 Py_ssize_t unseen):
        self.context = context
        self.future = future
        self.reading = reading
        self.scopes = scopes
        self.refusal = refusal
        self.unseen = unseen
        self.received = 0
        self.began = now()
        reading.add(self)
        scopes.add(context.scope)

    cpdef cancel(self):
        """Whoever waits for the body is told by `refusal`."""
        self.future.cancel()

    cpdef bint done(self):
        """The body is there, or never will be."""
        return self.context is None

    cdef int _begin(self, StepRunner runner) except -1:
        self.runner = runner
        self.context.task = self
        self.future.add_done_callback(self._arrived)
        return 0

    def _arrived(self, future):
        cdef RequestContext context = self.context
        self.context = None
        # It holds what calls back: the two would hold each other, and no collector sees the inside of the one.
        self.future = None
        self.reading.discard(self)
        self.scopes.discard(context.scope)
        context.task = None
        try:
            context.body = future.result()
        except BaseException as error:
            self.runner.fail(context, self.refusal(self, error, context))
            return
        self.runner.advance(context)


cdef class PendingWork:
    """Something else that a step waits for without a task; a base for what knows when that is over.

    Whoever derives from it calls `advance`, `fail` or `wait_for`, once, and not before the step has given it back.
    """

    def __init__(self, RequestContext context not None):
        self.context = context

    cpdef cancel(self):
        """Nobody waits any more. To be told to whoever derives from this."""
        raise NotImplementedError

    cpdef bint done(self):
        return self.context is None

    cdef int _begin(self, StepRunner runner) except -1:
        self.runner = runner
        self.context.task = self
        return 0

    cdef RequestContext _end(self):
        cdef RequestContext context = self.context
        if context is None or self.runner is None:
            raise RuntimeError("this ends once, and not before its step has given it back")
        self.context = None
        context.task = None
        return context

    cpdef advance(self):
        """The steps go on."""
        cdef RequestContext context = self._end()
        self.runner.advance(context)

    cpdef fail(self, error):
        cdef RequestContext context = self._end()
        self.runner.fail(context, error)

    cpdef wait_for(self, awaitable):
        """The steps go on behind `awaitable`, which costs a task."""
        cdef RequestContext context = self._end()
        self.runner.wait(context, awaitable)


cdef class StepRunner:
    """Runs the steps of exchanges; `active` holds those that have begun and not ended.

    wait(exchange, awaitable): called for a step that gave back an awaitable; has to call `advance` or `fail` when that
    is done.
    on_failure(exchange, error): called with what a step raised.
    """

    def __init__(self, wait, on_failure):
        self.wait = wait
        self.on_failure = on_failure
        self.resume_method = self._resume
        self.active = set()

    cpdef start(self, RequestContext context, tuple steps):
        """Begins with the first of `steps`; counts the exchange as running until its last step or its failure."""
        self.active.add(context)
        context.steps = steps
        context.next_step = 0
        self.advance(context)

    cpdef advance(self, RequestContext context):
        """Runs steps until one has to wait, or until the last."""
        try:
            if self._run(context):
                return
        except Exception as error:
            self.fail(context, error)
            return
        self.active.discard(context)
        if context.endings is not None:
            self._end(context, None)

    cpdef fail(self, RequestContext context, error):
        """Ends the exchange with an error."""
        self.active.discard(context)
        if context.endings is None:
            self.on_failure(context, error)
            return
        try:
            self._end(context, error)
        finally:
            self.on_failure(context, error)

    cdef int _end(self, RequestContext context, error) except -1:
        """What one of them raises keeps none of the others from their turn; the first is raised when all are done."""
        endings = context.endings
        context.endings = None
        broken = None
        for ending in endings:
            try:
                ending(context, error)
            except Exception as mistake:
                if broken is None:
                    broken = mistake
        if broken is not None:
            raise broken
        return 0

    cdef int _run(self, RequestContext context) except -1:
        """1: a step has to wait. 0: there is nothing left to do."""
        cdef Execution execution
        while context.next_step < len(context.steps):
            step = context.steps[context.next_step]
            context.next_step += 1
            waiting = step(context)
            if waiting is None:
                if context.answered:
                    return 0
            elif type(waiting) is Execution:
                execution = <Execution>waiting
                if execution.state != ExecutionState.DONE and execution.state != ExecutionState.STREAMING:
                    execution.owner = context
                    execution.on_done = self.resume_method
                    return 1
            elif type(waiting) is BodyArrival:
                (<BodyArrival>waiting)._begin(self)
                return 1
            elif isinstance(waiting, PendingWork):
                (<PendingWork>waiting)._begin(self)
                return 1
            else:
                self.wait(context, waiting)
                return 1
        return 0

    def _resume(self, Execution execution not None):
        cdef RequestContext context = <RequestContext?>execution.owner
        execution.owner = None
        self.advance(context)

    @property
    def running(self):
        """How many exchanges have begun and not ended."""
        return len(self.active)
