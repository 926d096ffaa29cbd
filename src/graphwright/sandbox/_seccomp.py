"""Write the system call filter of sandboxed commands, with the libseccomp of the machine."""

from __future__ import annotations

import ctypes
import errno
import os
from ctypes.util import find_library
from functools import cache

__all__ = ["REFUSED_CALLS", "filter_problem", "open_filter"]

# fmt: off
REFUSED_CALLS = (
    "acct", "add_key", "bpf", "chroot", "clock_adjtime", "clock_settime", "create_module", "delete_module",
    "fanotify_init", "finit_module", "fsconfig", "fsmount", "fsopen", "fspick", "get_kernel_syms", "init_module",
    "io_uring_enter", "io_uring_register", "io_uring_setup", "ioperm", "iopl", "kcmp", "kexec_file_load",
    "kexec_load", "keyctl", "lookup_dcookie", "mbind", "migrate_pages", "mount", "mount_setattr", "move_mount",
    "move_pages", "name_to_handle_at", "nfsservctl", "open_by_handle_at", "open_tree", "perf_event_open",
    "pidfd_getfd", "pivot_root", "process_madvise", "process_vm_readv", "process_vm_writev", "ptrace",
    "query_module", "quotactl", "reboot", "request_key", "sched_setaffinity", "set_mempolicy", "setdomainname",
    "sethostname", "setns", "settimeofday", "stime", "swapoff", "swapon", "sysfs", "syslog", "umount", "umount2",
    "unshare", "uselib", "userfaultfd", "vhangup", "vm86", "vm86old",
)
# fmt: on
"""Calls that a program in a sandbox has no use for; each fails with "operation not permitted"."""

_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000


def filter_problem() -> str:
    """Return why there can be no filter here; empty where there can."""
    try:
        _program()
    except (OSError, AttributeError) as error:
        return (
            f"no system call filter could be made ({error}); install libseccomp (Debian: apt-get install libseccomp2)"
        )
    return ""


def open_filter() -> int:
    """Return a file descriptor that reads as the filter; the caller closes it.

    Raises:
        OSError: there is no usable libseccomp.
    """
    descriptor = os.memfd_create("filter")
    os.write(descriptor, _program())
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


@cache
def _program() -> bytes:
    library = ctypes.CDLL(find_library("seccomp") or "libseccomp.so.2")
    library.seccomp_init.restype = ctypes.c_void_p
    context = library.seccomp_init(ctypes.c_uint32(_ALLOW))
    if not context:
        raise OSError("seccomp_init failed")
    handle = ctypes.c_void_p(context)
    try:
        for name in REFUSED_CALLS:
            number = library.seccomp_syscall_resolve_name(name.encode())
            # A negative number is a call that this processor does not have.
            if number >= 0:
                added = library.seccomp_rule_add_array(handle, ctypes.c_uint32(_ERRNO | errno.EPERM), number, 0, None)
                if added != 0:
                    raise OSError(-added, f"the call {name} cannot be refused")
        return _exported(library, handle)
    finally:
        library.seccomp_release(handle)


def _exported(library: ctypes.CDLL, handle: ctypes.c_void_p) -> bytes:
    descriptor = os.memfd_create("filter")
    try:
        if library.seccomp_export_bpf(handle, descriptor) != 0:
            raise OSError("seccomp_export_bpf failed")
        os.lseek(descriptor, 0, os.SEEK_SET)
        return os.read(descriptor, 1 << 20)
    finally:
        os.close(descriptor)
