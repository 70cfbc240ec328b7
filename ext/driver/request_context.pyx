"""Runs the steps of requests by callbacks.

Steps run by callbacks and not as a coroutine: a request whose execution runs on a pipelined pool costs no task, no
future, and no turn of the event loop besides the two in which request and result arrive. This module does not depend on
the purpose of steps.
"""

from rowcall.ext.base.clock cimport now
from rowcall.ext.driver.execution cimport Execution, ExecutionState

cdef object NO_VALUES = {}


cdef class RequestContext:
    """Data that the steps of one request share, and the position in these steps. It lives as long as the request.

    scope, protocol: the RSGI objects of the request and its response.
    values: decoded texts of the parameter segments of the path, by name.
    body: bytes; None until the first step that needs it has read it (`service.request.body`).
    mask: bits of the present parameters, by index in the routine.
    arguments: the text (UTF-8) of each present parameter, or None for NULL. has_null: one of them is None.
    execution: the run of the routine, in flight or finished; None before.
    comment_headers: the header lines of the comment, once the caller is authorised.
    user: the caller (`core.auth.claims.User`); None for an anonymous caller, and if no step has authenticated.
    lease: the lease under which the result is computed; None if no other request can wait for it.
    sent_values: `mask` and `arguments` as the client sent them, if steps encrypt or hash them and the cache key is made
    of them; otherwise None.
    endings: called with the context, and its error or None, after the last step.
    answered: set by a step that has sent the response itself; no further step runs.
    deadline: time of the event loop after which the response is no longer needed; 0: none.
    task: the task or work for which the present step waits, so that it can be cancelled.
    """

    def __cinit__(self, scope, protocol):
        self.scope = scope
        self.protocol = protocol
        self.values = NO_VALUES
        self.mask = 0
        self.arguments = []
        self.steps = ()

    cpdef follow(self, tuple steps):
        """Continue with these steps. All remaining steps are dropped, including those that `enter` has put behind its
        own."""
        self.steps = steps
        self.next_step = 0
        self.outer = None

    cpdef enter(self, tuple steps):
        """Continue with these steps, and behind them with the remaining ones."""
        self.outer = (self.steps, self.next_step, self.outer)
        self.steps = steps
        self.next_step = 0

    cpdef leave(self):
        """Continue behind the steps that the last `enter` has begun. Raises RuntimeError if there are none."""
        if self.outer is None:
            raise RuntimeError("no steps have been entered")
        self.steps, self.next_step, self.outer = self.outer

    cpdef at_end(self, ending):
        """Register `ending(context, error)`, which is called when the last step is done, with None as the error, or a
        step has failed."""
        if self.endings is None:
            self.endings = []
        self.endings.append(ending)


cdef class BodyArrival:
    """A request body that is arriving: a step waits for it without a task.

    future: resolved with the bytes of the body. reading: set to which this object belongs until the future is done.
    scopes: set to which the scope of the request belongs until then. refusal(arrival, error, context): returns the
    error of the request if the body does not arrive. received: number of bytes that have arrived. hidden_bytes:
    announced bytes of a small body, whose arrival shows only when it is complete; 0 for a large one. late: set by the
    code that watches for slow bodies when it has ended this one.
    """

    def __init__(self, RequestContext context not None, future, set reading not None, set scopes not None, refusal,
                 Py_ssize_t hidden_bytes):
        self.context = context
        self.future = future
        self.reading = reading
        self.scopes = scopes
        self.refusal = refusal
        self.hidden_bytes = hidden_bytes
        self.received = 0
        self.began = now()
        reading.add(self)
        scopes.add(context.scope)

    cpdef cancel(self):
        """Stop waiting for the body; the request fails with the error from `refusal`."""
        self.future.cancel()

    cpdef bint done(self):
        """Return whether the body has arrived or will never arrive."""
        return self.context is None

    cdef int _begin(self, StepRunner runner) except -1:
        """Let `runner` continue the request when the body has arrived. Called when a step has returned this object."""
        self.runner = runner
        self.context.task = self
        self.future.add_done_callback(self._continue_with_body)
        return 0

    def _continue_with_body(self, future):
        """Continue the request with the body, or fail it with the error from `refusal`. future: the done one."""
        cdef RequestContext context = self.context
        self.context = None
        # The future refers to this object by the callback. Both would stay in memory, because the garbage collector
        # does not see references within the future.
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
    """Base of other work for which a step waits without a task. Subclasses know when the work is done.

    A subclass calls one of `advance`, `fail` and `wait_for`, once, and not before its step has returned this object;
    otherwise they raise RuntimeError.
    """

    def __init__(self, RequestContext context not None):
        self.context = context

    cpdef cancel(self):
        """Stop the work, because the response is no longer needed. Subclasses implement this."""
        raise NotImplementedError

    cpdef bint done(self):
        """Return whether the request has continued."""
        return self.context is None

    cdef int _begin(self, StepRunner runner) except -1:
        """Let `runner` continue the request when the work is done. Called when a step has returned this object."""
        self.runner = runner
        self.context.task = self
        return 0

    cdef RequestContext _end(self):
        """Return the context, which continues now and no longer waits for this work. Raises RuntimeError for a second
        call, or before the step has returned."""
        cdef RequestContext context = self.context
        if context is None or self.runner is None:
            raise RuntimeError("this ends once, and not before its step has given it back")
        self.context = None
        context.task = None
        return context

    cpdef advance(self):
        """Continue with the next step."""
        cdef RequestContext context = self._end()
        self.runner.advance(context)

    cpdef fail(self, error):
        """End the request with an error."""
        cdef RequestContext context = self._end()
        self.runner.fail(context, error)

    cpdef wait_for(self, awaitable):
        """Continue with the next step after `awaitable`, for which a task is created."""
        cdef RequestContext context = self._end()
        self.runner.wait(context, awaitable)


cdef class StepRunner:
    """Runs the steps of request contexts; `active` has the contexts that have begun and not ended.

    wait(context, awaitable): called for a step that returned an awaitable; has to call `advance` or `fail` when that is
    done. on_failure(context, error): called with the error that ends a request: a step raised it, or it was passed to
    `fail`.
    """

    def __init__(self, wait, on_failure):
        self.wait = wait
        self.on_failure = on_failure
        self.resume_method = self._resume
        self.active = set()

    cpdef start(self, RequestContext context, tuple steps):
        """Begin with the first of `steps`. The context is active until its last step or its failure."""
        self.active.add(context)
        context.follow(steps)
        self.advance(context)

    cpdef advance(self, RequestContext context):
        """Run steps until a step has to wait, the request is answered, or no step is left; in the last two cases the
        endings are called. If a step raises, the request ends as by `fail`. Raises the first error of an ending, when
        all endings were called."""
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
        """End the request with an error: call its endings, then `on_failure`. Raises the first error of an ending, when
        all of these were called."""
        self.active.discard(context)
        if context.endings is None:
            self.on_failure(context, error)
            return
        try:
            self._end(context, error)
        finally:
            self.on_failure(context, error)

    cdef int _end(self, RequestContext context, error) except -1:
        """Call all endings with `error`, or None. After an error of an ending, the others are still called; then the
        first error is raised."""
        endings = context.endings
        # Each ending is called once, even if one of them ends the request again.
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
        """Run steps. Return 1 if a step has to wait, 0 if no step is left or the request is answered."""
        cdef Execution execution
        while True:
            if context.next_step >= len(context.steps):
                if context.outer is None:
                    return 0
                context.leave()
                continue
            # Advanced before the call, because the step may replace the remaining steps.
            step = context.steps[context.next_step]
            context.next_step += 1
            waiting = step(context)
            if waiting is None:
                if context.answered:
                    return 0
            elif type(waiting) is Execution:
                execution = <Execution>waiting
                # A result that is there already, such as that of a refused execution, needs no callback.
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

    def _resume(self, Execution execution not None):
        """Continue the context whose execution is done or streams."""
        cdef RequestContext context = <RequestContext?>execution.owner
        execution.owner = None
        self.advance(context)

    @property
    def running(self):
        """Number of contexts that have begun and not ended."""
        return len(self.active)
