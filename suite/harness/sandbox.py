"""Takes from a process what it has no need of: the network, and in the end almost every call.

Two filters of system calls, both kept by every thread and process that comes after. ``no_network``
is for compilers and workers, which need files and memory. ``confine`` is for the child in which
the emulator runs a program natively: computing, threads of its own, and what it already has open
for its answer are all that is left.

A filter cannot be taken back. Where the kernel or the architecture has none (anything but Linux on
x86-64), the limits on resources still hold, and the functions say so by returning False.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import resource
import struct
import sys
from collections.abc import Sequence

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2
_AUDIT_ARCH_X86_64 = 0xC000003E
_X32 = 0x40000000  # calls from here on are those of the x32 interface
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # classic BPF
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER_AT, _ARCH_AT, _ARGUMENTS_AT = 0, 4, 16
_AF_UNIX = 1
_CLONE_THREAD, _PROT_EXEC = 0x10000, 4

# Numbers of system calls on x86-64.
_SOCKET, _CLONE, _CLONE3, _TGKILL, _MMAP, _MPROTECT = 41, 56, 435, 234, 9, 10
# Other processes, other namespaces, the kernel: no compiler and no worker has business there.
_FOREIGN = {
    "ptrace": 101,
    "mount": 165,
    "umount2": 166,
    "init_module": 175,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "unshare": 272,
    "perf_event_open": 298,
    "setns": 308,
    "process_vm_readv": 310,
    "process_vm_writev": 311,
    "finit_module": 313,
    "bpf": 321,
    "userfaultfd": 323,
    "io_uring_setup": 425,  # its calls would pass by the filter
    "pidfd_getfd": 438,
}
# What computing, threads and one line to an open pipe take.
_COMPUTING = {
    "read": 0,
    "write": 1,
    "close": 3,
    "munmap": 11,
    "brk": 12,
    "rt_sigaction": 13,
    "rt_sigprocmask": 14,
    "rt_sigreturn": 15,
    "sched_yield": 24,
    "mremap": 25,
    "madvise": 28,
    "nanosleep": 35,
    "getpid": 39,
    "exit": 60,
    "gettimeofday": 96,
    "sigaltstack": 131,
    "gettid": 186,
    "futex": 202,
    "sched_getaffinity": 204,
    "restart_syscall": 219,
    "clock_gettime": 228,
    "clock_nanosleep": 230,
    "exit_group": 231,
    "set_robust_list": 273,
    "getcpu": 309,
    "getrandom": 318,
    "membarrier": 324,
    "rseq": 334,
}


def no_network(local_sockets: bool = False) -> bool:
    """Refuses this process new sockets, and calls that reach into other processes or the kernel.

    Args:
        local_sockets: Whether sockets of this host stay possible; a GPU's driver may need them.

    Returns:
        Whether the host could; otherwise nothing has changed.
    """
    refuse = _ERRNO | errno.EPERM
    family = _argument(0, _EQUAL, _AF_UNIX) if local_sockets else []
    rules = [*(_rule(number, refuse) for number in _FOREIGN.values())]
    rules.append(_rule(_SOCKET, refuse, unless=family))
    return _install(rules, otherwise=_ALLOW)


def confine() -> bool:
    """Leaves this process its processor, its memory and the descriptors that it has.

    No file, socket or process can be opened, made or signalled any more; memory cannot be made
    executable. Forbidden calls fail with EPERM.

    Returns:
        Whether all of that holds; otherwise only limits on files and core dumps do.
    """
    for what in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE):
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(what, (0, 0))
    refuse = _ERRNO | errno.EPERM
    rules = [_rule(number, _ALLOW) for number in _COMPUTING.values()]
    rules += [
        # Then the C library makes threads by ``clone``, whose flags a filter can read.
        _rule(_CLONE3, _ERRNO | errno.ENOSYS),
        _rule(_CLONE, refuse, unless=_argument(0, _ANY_BIT, _CLONE_THREAD)),
        _rule(_TGKILL, refuse, unless=_argument(0, _EQUAL, os.getpid())),
        _rule(_MMAP, _ALLOW, unless=_argument(2, _ANY_BIT, _PROT_EXEC), then=refuse),
        _rule(_MPROTECT, _ALLOW, unless=_argument(2, _ANY_BIT, _PROT_EXEC), then=refuse),
    ]
    return _install(rules, otherwise=refuse)


_Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, constant


def _argument(which: int, test: int, value: int) -> list[_Instruction]:
    """Tests the lower half of an argument: skips one instruction where it does not hold."""
    return [(_LOAD, 0, 0, _ARGUMENTS_AT + 8 * which), (test, 0, 1, value)]


def _rule(
    number: int, action: int, unless: Sequence[_Instruction] = (), then: int = _ALLOW
) -> list[_Instruction]:
    """``action`` for one system call; ``then`` where the test of ``unless`` holds."""
    body = [*unless, (_RETURN, 0, 0, then)] if unless else []
    body.append((_RETURN, 0, 0, action))
    return [(_EQUAL, 0, len(body), number), *body]


def _install(rules: Sequence[Sequence[_Instruction]], otherwise: int) -> bool:
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    program: list[_Instruction] = [
        (_LOAD, 0, 0, _ARCH_AT),
        (_EQUAL, 1, 0, _AUDIT_ARCH_X86_64),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _KILL),
        *(instruction for rule in rules for instruction in rule),
        (_RETURN, 0, 0, otherwise),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *i) for i in program))
    # struct sock_fprog: a length, and after padding the address of the instructions.
    header = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(code)))
    prctl = ctypes.CDLL(None).prctl
    prctl.argtypes = (ctypes.c_int, *(ctypes.c_ulong,) * 4)
    if prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return False
    at = ctypes.addressof(header)
    return bool(prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, at, 0, 0) == 0)
