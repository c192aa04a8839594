"""A filter of system calls for bubblewrap's ``--seccomp``: what no cell needs.

Refused with "operation not permitted": memory that no limit counts (memfd, System V,
shared mappings of no file: they keep pages that their process seems to have given up),
new namespaces and mounts (a tmpfs without a limit), other programs' memory, and the
kernel's less travelled ways. The kernel takes a classic BPF program, 8 bytes for each
instruction: code (16 bits), two jump distances (8 bits each), a constant (32 bits).
"""

from __future__ import annotations

import platform
import struct

LOAD, RETURN = 0x20, 0x06
JUMP_IF_EQUAL, JUMP_IF_AT_LEAST, JUMP_IF_ANY_BIT = 0x15, 0x35, 0x45
ALLOW, REFUSE, KILL = 0x7FFF0000, 0x00050000 | 1, 0x80000000  # 1: EPERM
NO_SUCH_CALL = 0x00050000 | 38  # ENOSYS: the C library falls back from clone3 to clone
# Offsets in the kernel's seccomp_data; each argument takes 8 bytes, its low half first.
NUMBER, MACHINE, FIRST_ARGUMENT, FOURTH_ARGUMENT = 0, 4, 16, 40
MAP_SHARED, MAP_ANONYMOUS = 0x01, 0x20
NEW_NAMESPACES = 0x7E020080  # the CLONE_NEW... bits
X32 = 0x40000000  # the other numbering of calls on x86-64

# machine -> (AUDIT_ARCH, numbers of clone and mmap, numbers of calls that are refused)
COMMON = {"clone3": 435, "io_uring_setup": 425, "open_tree": 428, "move_mount": 429,
          "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
          "mount_setattr": 442, "memfd_secret": 447, "pidfd_getfd": 438}
X86_64 = {"memfd_create": 319, "shmget": 29, "msgget": 68, "semget": 64, "ptrace": 101,
          "unshare": 272, "setns": 308, "mount": 165, "pivot_root": 155, "bpf": 321,
          "keyctl": 250, "add_key": 248, "request_key": 249, "userfaultfd": 323,
          "perf_event_open": 298, "process_vm_readv": 310, "process_vm_writev": 311}
AARCH64 = {"memfd_create": 279, "shmget": 194, "msgget": 186, "semget": 190,
           "ptrace": 117, "unshare": 97, "setns": 268, "mount": 40, "pivot_root": 41,
           "bpf": 280, "keyctl": 219, "add_key": 217, "request_key": 218,
           "userfaultfd": 282, "perf_event_open": 241, "process_vm_readv": 270,
           "process_vm_writev": 271}
MACHINES = {"x86_64": (0xC000003E, 56, 9, COMMON | X86_64),
            "aarch64": (0xC00000B7, 220, 222, COMMON | AARCH64)}


def program(machine: str = platform.machine()) -> bytes | None:
    """The filter for a machine, or None where its calls' numbers are not known here.

    >>> len(program("x86_64")) % 8, program("a typewriter")
    (0, None)
    """
    if machine not in MACHINES:
        return None
    architecture, clone, mmap, refused = MACHINES[machine]
    code = [(LOAD, 0, 0, MACHINE), (JUMP_IF_EQUAL, 1, 0, architecture),
            (RETURN, 0, 0, KILL), (LOAD, 0, 0, NUMBER),
            (JUMP_IF_AT_LEAST, 0, 1, X32), (RETURN, 0, 0, KILL)]
    for name, number in refused.items():
        answer = NO_SUCH_CALL if name == "clone3" else REFUSE
        code += [(JUMP_IF_EQUAL, 0, 1, number), (RETURN, 0, 0, answer)]
    code += [(JUMP_IF_EQUAL, 0, 4, mmap), (LOAD, 0, 0, FOURTH_ARGUMENT),
             (JUMP_IF_ANY_BIT, 0, 5, MAP_SHARED),
             (JUMP_IF_ANY_BIT, 0, 4, MAP_ANONYMOUS), (RETURN, 0, 0, REFUSE),
             (JUMP_IF_EQUAL, 0, 2, clone), (LOAD, 0, 0, FIRST_ARGUMENT),
             (JUMP_IF_ANY_BIT, 1, 0, NEW_NAMESPACES), (RETURN, 0, 0, ALLOW),
             (RETURN, 0, 0, REFUSE)]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)
