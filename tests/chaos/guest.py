"""A guest that keeps no rule: it opens a session by the daemon's socket, as any program does, and
then writes at random over its whole window, rings the doorbell and sends nonsense, for a while or
until its session is ended.

Arguments: the socket, the VM, a seed, and for how many seconds.
"""
import array
import mmap
import os
import pathlib
import random
import socket
import struct
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "local"))
import wire

STROKE = 256
MISUNDERSTOOD = (1, 803)    # statuses of a hello that is not as the daemon wants it


def connect(path, vm):
    """The connection, the window and the doorbell; nothing where the VM takes no more sessions."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(path)
    connection.send(wire.hello(vm, "scribbler"))
    welcome, ancillary, _, _ = connection.recvmsg(wire.WELCOME_LEN, socket.CMSG_LEN(8))
    if len(welcome) == wire.WELCOME_LEN and wire.status(welcome) in MISUNDERSTOOD:
        sys.exit(f"refused: {welcome[128:].rstrip(bytes(1)).decode()}")
    if len(welcome) < wire.WELCOME_LEN or not ancillary:
        sys.exit(0)
    fds = array.array("i")
    fds.frombytes(ancillary[0][2])
    window, doorbell = fds
    return connection, mmap.mmap(window, os.fstat(window).st_size), doorbell


def attach(connection, lane):
    bell = os.eventfd(0)
    socket.send_fds(connection, [struct.pack("<IIII", wire.LANE, lane, 0, 0)], [bell])
    connection.recv(16)


def scribble(dice, connection, window, doorbell):
    """A stroke into the lanes, most of the time, where all that the host reads first lies."""
    end = len(window) if dice.random() < 0.2 else min(len(window), 1 << 20)
    start = dice.randrange(end - STROKE)
    stroke = dice.randrange(1, STROKE)
    window[start:start + stroke] = dice.randbytes(stroke)
    os.eventfd_write(doorbell, 1)
    if dice.random() < 0.001:
        connection.send(dice.randbytes(dice.randrange(1, 64)))


def main():
    path, vm, seed, seconds = sys.argv[1:]
    dice = random.Random(int(seed))
    end = time.monotonic() + float(seconds)
    try:
        connection, window, doorbell = connect(path, vm)
        for lane in range(dice.randrange(4)):
            attach(connection, lane)
        while time.monotonic() < end:
            scribble(dice, connection, window, doorbell)
    except OSError:    # the host has had enough
        pass


main()
