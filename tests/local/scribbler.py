"""What stands in the place of a vGPU process that its guest has taken over: it gets what that process
gets, writes at random over all of it that is memory, and rings all bells, until it is killed. Where
there is no file "hostile" in $FAIRGV_TEST_NOTES it is the real vGPU process; a file "seat only" there spares the
rest, for which the daemon ends a session soon. What memory it had it notes there, too.
"""
import array
import json
import mmap
import os
import pathlib
import random
import socket
import stat
import sys

CONTROL_FD = 3
MESSAGE_LEN = 4096
FDS_MAX = 16
PREPARED_LEN = 260   # struct fgv_prepared; zeros say that all is well
STROKE = 4096


def receive(control):
    """The descriptors of the daemon's next message."""
    message, ancillary, _, _ = control.recvmsg(MESSAGE_LEN, socket.CMSG_LEN(FDS_MAX * 4))
    if not message:
        sys.exit(0)
    fds = array.array("i")
    for _, _, data in ancillary:
        fds.frombytes(data)
    return list(fds)


def map_all(fds, to_read_only=0):
    """Those that are memory, mapped; and their inode numbers, the same in all that have them. So many
    can only be read: the VM's quota, and the accounts of its other sessions.
    """
    maps, inodes, refused = [], [], 0
    for fd in fds:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or not status.st_size:
            continue
        inodes.append(status.st_ino)
        try:
            maps.append(mmap.mmap(fd, status.st_size))
        except PermissionError:
            refused += 1
    if refused != to_read_only:
        sys.exit(f"{refused} descriptors can't be written to, not {to_read_only}")
    return maps, inodes


def scribble(notes):
    control = socket.socket(fileno=CONTROL_FD)
    seat_only = (notes / "seat only").exists()
    fds = receive(control)
    control.send(bytes(PREPARED_LEN))
    rest = receive(control)
    maps, inodes = map_all(fds)
    more_maps, more_inodes = map_all(rest, to_read_only=2)
    if not seat_only:
        maps += more_maps
        fds += rest
    bells = [fd for fd in fds if "eventfd" in os.readlink(f"/proc/self/fd/{fd}")]
    note = notes / str(os.getpid())
    note.write_text(json.dumps(inodes + more_inodes))
    note.rename(f"{note}.json")
    while True:
        for memory in maps:
            start = random.randrange(max(len(memory) - STROKE, 0) + 1)
            end = min(start + STROKE, len(memory))
            memory[start:end] = random.randbytes(end - start)
        for bell in bells:
            os.eventfd_write(bell, 1)


def main():
    notes = pathlib.Path(os.environ["FAIRGV_TEST_NOTES"])
    if (notes / "hostile").exists():
        scribble(notes)
    real = pathlib.Path(os.environ.get("abs_top_builddir", ".")) / "backend/vgpu/fairgv-vgpu"
    os.execv(real, ["fairgv-vgpu"])


main()
