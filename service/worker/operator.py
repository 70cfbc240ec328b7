"""Authenticate users of the service who sign in to the console of the supervisor."""

from __future__ import annotations

from rowcall.core.auth.claims import IdentityClaims
from rowcall.core.errors.problems import Problem
from rowcall.service.identity.sessions import Sessions
from rowcall.service.request.subrequests import AbsentClient, CapturedResponse, SubrequestScope
from rowcall.service.request_context.request_context import RequestContext
from rowcall.service.supervisor.channel import Identify, IdentityReply


async def identify_operator(question: Identify, sessions: Sessions, claims: IdentityClaims) -> IdentityReply:
    """Return the user whose session, token or API key the headers contain; an anonymous caller if they contain none
    that is valid, or if that cannot be checked. claims: which claim is the name of a user.

    A user who acts as another one counts as anonymous: the console is not opened with the rights of the other user.
    """
    scope = SubrequestScope("POST", "/console", "", [*question.headers], 1, client=question.address)
    context = RequestContext(scope, CapturedResponse(AbsentClient()))
    try:
        waiting = sessions.authenticate(context)
        if waiting is not None:
            await waiting
    except Problem:
        context.user = None
    user = context.user
    if user is None or user.impersonates:
        return IdentityReply(question.number)
    return IdentityReply(question.number, claims.name_of(user), user.roles, user.expires)
