"""The step that checks new passwords, before they are hashed; and the lists in which it looks them up."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path

from rowcall.core.accounts.breached_list import BreachedListError, contains, digest
from rowcall.core.accounts.password_rules import BREACHED, PasswordRules, checked_password_indexes, rule_violation
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.binding_error import Fault
from rowcall.core.errors.problems import Problem, unavailable
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.response.headers import argument_text

log = logging.getLogger("rowcall")


def check_passwords(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that checks new passwords, or None if there are no rules or new passwords. The step raises
    `Problem`: 400 for a password that breaks a rule, 503 if a list cannot be read.

    The first call in a process opens the lists. Raises OSError or UnicodeDecodeError, as `PasswordLists` does.
    """
    rules = services.options.passwords
    passwords = checked_password_indexes(endpoint)
    return _Check(endpoint, services, rules, passwords).check if rules.exist and passwords else None


class _Check:
    """The step that checks the new passwords of one endpoint."""

    def __init__(
        self, endpoint: Endpoint, services: Services, rules: PasswordRules, passwords: tuple[int, ...]
    ) -> None:
        self._name = endpoint.name
        self._rules = rules
        self._passwords = tuple((index, endpoint.parameters[index].api_name) for index in passwords)
        self._about_user = tuple(
            index
            for index, parameter in enumerate(endpoint.parameters)
            if index not in passwords
            and not rules.not_containing.isdisjoint((parameter.db_name.lower(), parameter.api_name.lower()))
        )
        self._user_name = services.options.auth.identity.user_name
        self._lists = services.host.get_or_create("password lists", lambda: PasswordLists(rules))

    async def check(self, context: RequestContext) -> None:
        """Raise `Problem` 400 with all faults if a new password breaks a rule, 503 if a list cannot be read."""
        faults = []
        for index, name in self._passwords:
            password = argument_text(context, index)
            if password is None:
                continue
            broken = rule_violation(self._rules, password, self._words(context))
            if broken is None and await self._lists.have(password):
                broken = BREACHED
            if broken is not None:
                faults.append(Fault(name, name, f"the password in '{name}' {broken}"))
        if faults:
            log.info("%s: a new password is refused: %s", self._name, faults[0].message)
            raise Problem(400, faults[0].message, others={"errors": [fault.members for fault in faults]})

    def _words(self, context: RequestContext) -> list[str]:
        """Return the texts that a password must not contain: the user's name and arguments about the user. Empty if the
        rules have no `not_containing`."""
        if not self._rules.not_containing:
            return []
        words = [argument_text(context, index) for index in self._about_user]
        if context.user is not None:
            words.append(context.user.first(self._user_name))
        return [word for word in words if word]


class PasswordLists:
    """The lists of breached passwords of a worker.

    The file of hashes is read at each look-up and not mapped: if a mapped file is shortened, the worker is killed.
    """

    def __init__(self, rules: PasswordRules) -> None:
        """Open the file of hashes and read the list of words. Raises OSError or UnicodeDecodeError."""
        self._path = rules.breached_file
        self._file = None if self._path is None else os.open(self._path, os.O_RDONLY)
        self._words = frozenset() if rules.words_file is None else words_of(Path(rules.words_file))

    async def have(self, password: str) -> bool:
        """Return whether a list has the password. Raises `Problem` 503 if a list cannot be read."""
        if password.casefold() in self._words:
            return True
        return self._file is not None and await asyncio.to_thread(self._search, self._file, password)

    def _search(self, file: int, password: str) -> bool:
        try:
            size = os.fstat(file).st_size
            return contains(lambda offset, count: os.pread(file, count, offset), size, digest(password))
        except (BreachedListError, OSError) as error:
            log.error("the list of breached passwords %s cannot be read: %s", self._path, error)
            raise unavailable(
                "the list of breached passwords cannot be read; the log of the service says why"
            ) from None

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def words_of(path: Path) -> frozenset[str]:
    """Return the lines of a file, case-folded. Raises OSError or UnicodeDecodeError."""
    return frozenset(word.casefold() for line in path.read_text("utf-8-sig").split("\n") if (word := line.rstrip("\r")))
