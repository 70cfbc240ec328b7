"""`--hash` and `--basic_auth`: print the hash of a password, or a header of HTTP Basic (command-4).

Programs use the last line of the output, so nothing may follow it.
"""

from __future__ import annotations

from rowcall.core.auth.password_hash import hash_password
from rowcall.service.auth.basic import basic_header
from rowcall.service.command.about import banner
from rowcall.service.command.switches import Arguments


def show_hash(arguments: Arguments) -> int:
    (password,) = arguments.given["--hash"]
    banner()
    print(hash_password(password))
    return 0


def show_basic_auth(arguments: Arguments) -> int:
    user, password = arguments.given["--basic_auth"]
    banner()
    print(basic_header(user, password))
    return 0
