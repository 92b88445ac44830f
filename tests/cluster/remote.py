"""From one host to another as with ssh: a server outside the hosts, and the program that asks it.

    launcher on node1 ──socket in the shared files──▶ Door ──enters node2──▶ sh -c "the words"

As with ssh the words are read by a shell over there, nothing of the environment comes along, and what runs
there is no child of who asked and lives on if that one dies. The three streams are handed over themselves.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/root", "SHELL": "/bin/sh"}
_LONGEST = 1 << 20  # bytes of a command

Enter = Callable[[Sequence[object], Path], list[str]]


class Door:
    """The server; `client` is the program that asks it: `client [-x] HOST WORDS…`."""

    def __init__(self, folder: Path, hosts: Mapping[str, Enter], home: str | None = None) -> None:
        self._environment = {**_ENVIRONMENT, **({"HOME": home} if home else {})}
        self.client = folder / "remote-shell"
        self._address = folder / "door"
        self._hosts = hosts
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def __enter__(self) -> Door:
        self._socket.bind(str(self._address))
        self._socket.listen(64)
        self.client.write_text(
            f'#!/bin/sh\nexec "{sys.executable}" -SE "{__file__}" "{self._address}" "$@"\n'
        )
        self.client.chmod(0o755)
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                guest, _ = self._socket.accept()
            except OSError:  # closed: the cluster ends
                return
            threading.Thread(target=self._one, args=(guest,), daemon=True).start()

    def _one(self, guest: socket.socket) -> None:
        with guest:
            said, streams, _, _ = socket.recv_fds(guest, _LONGEST, 3)
            try:
                host, _, words = said.decode().partition("\0")
                code = self._run(host, words, streams)
            finally:
                for stream in streams:
                    os.close(stream)
            with contextlib.suppress(OSError):  # who asked has gone
                guest.send(str(code).encode())

    def _run(self, host: str, words: str, streams: list[int]) -> int:
        enter = self._hosts.get(host)
        if enter is None:
            os.write(streams[2], f"{host}: no such host\n".encode())
            return 255
        child = subprocess.Popen(
            enter(["sh", "-c", words], Path("/")),
            env=self._environment,
            stdin=streams[0],
            stdout=streams[1],
            stderr=streams[2],
            start_new_session=True,
        )
        return child.wait()


def ask(address: str, words: list[str]) -> int:
    """Has `words` run: options of ssh, which are dropped, a host, and a command. Returns its exit code."""
    while words and words[0].startswith("-"):
        words = words[1:]
    if not words:
        return 255
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
        door.connect(address)
        socket.send_fds(door, [f"{words[0]}\0{' '.join(words[1:])}".encode()], [0, 1, 2])
        return int(door.recv(64) or b"255")


if __name__ == "__main__":
    sys.exit(ask(sys.argv[1], sys.argv[2:]) & 0xFF)
