"""Killing a process before or after its n-th call to the kernel, by tracing it.

SQLite and the driver of PostgreSQL call the kernel from C: no hook in Python sees their writes,
syncs and locks. A tracer does (ptrace(2)): it stops the process before and after every call, counts
those that may change something, and kills it at one of them. Before: it was not made. After: it
was made, and the process never learnt of it.
"""

import ctypes
import os
import platform
import signal
import struct
from collections.abc import Callable
from functools import cache
from typing import Any

TRACEME, NEXT_CALL, SET_OPTIONS, CALL_INFO = 0, 24, 0x4200, 0x420E
MARK_CALLS, DIE_WITH_TRACER = 1, 0x100000
STOPPED_BY_CALL = signal.SIGTRAP | 0x80
ENTRY, EXIT = 1, 2
STRUCK = 77  # the status of a tracer that has killed
NAMES = {  # of x86-64; elsewhere every call counts, by its number
    1: "write", 18: "pwrite64", 20: "writev", 40: "sendfile", 42: "connect", 44: "sendto",
    45: "recvfrom", 72: "fcntl", 73: "flock", 74: "fsync", 75: "fdatasync", 76: "truncate",
    77: "ftruncate", 82: "rename", 83: "mkdir", 86: "link", 87: "unlink", 90: "chmod",
    91: "fchmod", 257: "openat", 263: "unlinkat", 264: "renameat", 265: "linkat",
    285: "fallocate", 316: "renameat2",
}  # fmt: skip


@cache
def missing() -> str | None:
    """Why processes cannot be traced here; None if they can."""
    if platform.system() != "Linux":
        return "tracing calls to the kernel needs Linux"
    pid = os.fork()
    if pid == 0:
        try:
            trace(lambda: os._exit(0 * os.open(os.devnull, os.O_RDONLY)), 1, lambda *_: None)
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return None if status == STRUCK else "processes may not be traced here (ptrace)"


def trace(work: Callable[[], Any], calls: int, say: Callable[..., None]) -> None:
    """Do ``work`` in a child, kill that at its n-th stop, and end this process as well."""
    library = ctypes.CDLL(None, use_errno=True)
    library.ptrace.restype = ctypes.c_long
    library.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    child = os.fork()
    if child == 0:
        if library.ptrace(TRACEME, 0, None, None) != 0:
            os._exit(3)
        os.kill(os.getpid(), signal.SIGSTOP)
        work()
        os._exit(0)
    os._exit(_follow(library, child, calls, say))


def _follow(library: Any, child: int, calls: int, say: Callable[..., None]) -> int:
    _, status = os.waitpid(child, 0)
    if not os.WIFSTOPPED(status):
        return 3
    if library.ptrace(SET_OPTIONS, child, None, MARK_CALLS | DIE_WITH_TRACER) != 0:
        os.kill(child, signal.SIGKILL)
        return 3
    size, passed, left, call = 128, 0, calls, 0
    info = ctypes.create_string_buffer(size)
    while True:
        library.ptrace(NEXT_CALL, child, None, passed)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            return os.WEXITSTATUS(status)
        if os.WIFSIGNALED(status):
            return 3
        passed = 0
        if os.WSTOPSIG(status) != STOPPED_BY_CALL:
            passed = os.WSTOPSIG(status)  # a signal of its own
            continue
        library.ptrace(CALL_INFO, child, size, ctypes.cast(info, ctypes.c_void_p))
        entered = info.raw[0] == ENTRY
        if entered:
            call = struct.unpack_from("Q", info.raw, 24)[0]
        if platform.machine() != "x86_64" or call in NAMES:
            left -= 1
            if left == 0:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                when = "before" if entered else "after"
                say("struck", "syscall", f"{when} {NAMES.get(call, call)}")
                return STRUCK
