"""A host that must not be contacted: it records every connection."""

from __future__ import annotations

import socket
import threading
from typing import Self


class Listener:
    """Listens on a free port; `heard` has the first data of each connection, possibly empty."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.heard: list[bytes] = []
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # Closing alone would not wake a thread in accept().
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(timeout=10)

    def _listen(self) -> None:
        while True:
            try:
                link, _ = self._socket.accept()
            except OSError:
                return
            with link:
                link.settimeout(2)
                self.heard.append(b"")
                try:
                    self.heard[-1] = link.recv(65_536)
                except OSError:
                    continue
