"""`--encrypt`: print a text as `encrypt` would store it, for values that are inserted by hand (command-4).

Programs use the last line of the output, so nothing may follow it.
"""

from __future__ import annotations

import asyncio
import sys

import psycopg

from rowcall.core.config import Settings
from rowcall.core.config.sections.data_protection import DataProtection
from rowcall.core.protection.key_ring import KeyRing
from rowcall.service.command.about import banner
from rowcall.service.command.configuration_files import load
from rowcall.service.command.serve import connections, require_readable
from rowcall.service.command.switches import Arguments
from rowcall.service.database.connector import Connector
from rowcall.service.encryption.columns import PURPOSE
from rowcall.service.options.application_name import encryption_name
from rowcall.service.options.from_settings import worker_options
from rowcall.service.protection.key_rotation import key_rotation_for
from rowcall.service.protection.protector import Keys, Protector
from rowcall.service.startup_error import StartupError


def show_encrypted(arguments: Arguments) -> int:
    """Print the encrypted text; if data protection is disabled, print only a message that says so. A missing key ring
    is created. Return 0. Raises ConfigError, StartupError."""
    (text,) = arguments.given["--encrypt"]
    settings = load(arguments).settings
    require_readable(settings)
    banner()
    if not settings.is_enabled(DataProtection):
        print("Data protection is not configured: DataProtection:Enabled is false, and `encrypt` does nothing.")
        return 0
    with connections(settings, demo=False) as opened:
        connector = Connector(worker_options(settings, opened).target)
        try:
            sealed = asyncio.run(_encrypt_text(text, settings, connector))
        except (psycopg.Error, OSError) as error:
            raise StartupError(f"the key ring cannot be read: {str(error).strip()}") from None
    if settings.read(DataProtection).storage == "Default":
        print("DataProtection:Storage is Default: the key of this text ends with this command.", file=sys.stderr)
    print(sealed)
    return 0


async def _encrypt_text(text: str, settings: Settings, connector: Connector) -> str:
    """Return the encrypted text. A missing key ring is created. Raises `psycopg.Error`, OSError, StartupError."""
    keys = Keys(encryption_name(settings))

    def publish(ring: KeyRing) -> None:
        keys.ring = ring

    await key_rotation_for(settings, connector, publish).start()
    return Protector(keys, PURPOSE).seal(text.encode())
