"""Ranks on other hosts: a start that says what is missing there.

On other hosts the launcher starts a shell, which is everywhere, and that becomes the worker once it has seen
that the worker can run. A launcher by itself waits forever for a rank that never came, or names no host.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tilewise.launch.launcher import Start

# $0 is the worker. What does not start says why on its standard error; the event must be one line of JSON.
# Without hooks in the C library (see one_node.py) the look at it takes 9 ms instead of 60.
# The pause lets the words get through a launcher that ends the job when the first process leaves.
_GUARD = r"""
if said=$(UCX_MEM_MMAP_HOOK_MODE=none UCX_VFS_ENABLE=n "$0" --version 2>&1 </dev/null)
then exec "$0" "$@"
fi
host=$(uname -n)
if [ ! -e "$0" ]; then
    said="the worker is missing on $host: there is no $0"
    advice="install tilewise on $host under the same path, or on a file system that all hosts share"
elif [ ! -x "$0" ]; then
    said="the worker may not be executed on $host: $0"
    advice="check its permissions, and those of its file system (noexec), on $host"
else
    said="the worker does not start on $host: $0: $said"
    advice="the same tilewise, MPI and system libraries on every host; tilewise doctor on $host"
fi
plain() { printf %s "$1" | tr '\n\t' '  ' | tr -d '\000-\037"\\'; }
printf '\036{"event": "error", "kind": "usage", "rank": -1, "message": "%s", "advice": "%s"}\n' \
    "$(plain "$said")" "$(plain "$advice")"
sleep 1
exit 2
"""
_SHELL = ("/bin/sh", "-c", _GUARD)


def guarded(start: Start, program: str) -> Start:
    """`start`, where ranks are on other hosts with a shell around `program`, the worker."""
    if not start.elsewhere:
        return start
    at = start.command.index(program)
    command = [*start.command[:at], *_SHELL, *start.command[at:]]
    return msgspec.structs.replace(start, command=command)


def shown(command: Sequence[str]) -> list[str]:
    """`command` for people: without that shell."""
    words = list(command)
    if _GUARD in words:
        at = words.index(_GUARD)
        del words[at - 2 : at + 1]
    return words
