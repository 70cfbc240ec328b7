"""Everything that is written about the endpoints: at the start, when they have changed, and by `rowcall --generate`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from rowcall.core.codegen.selection import TypesOf
from rowcall.core.documents.descriptions import Descriptions
from rowcall.core.documents.safe_numbers import numbers_as_texts
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.service.codegen.documents import write_documents
from rowcall.service.codegen.writing import ClientWriter, clients_of
from rowcall.service.database.connector import Connector


class Describer:
    def __init__(self, wanted: Descriptions, connector: Connector) -> None:
        self._wanted = wanted
        clients = tuple(clients_of(wanted.typescript, wanted.dart, wanted.python))
        self._clients = ClientWriter(clients, connector) if clients else None

    async def write(self, endpoints: Sequence[Endpoint], types_of: TypesOf) -> bool:
        """What goes wrong is told, and keeps nobody from being served. Gives whether everything went well.

        Raises `StartupError` for tools that cannot be told apart.
        """
        if self._wanted.safe_numbers:
            endpoints, types_of = numbers_as_texts(endpoints, types_of)
        done = True
        if self._clients is not None:
            done = await self._clients.write(endpoints, types_of)
        return await asyncio.to_thread(write_documents, endpoints, types_of, self._wanted) and done
