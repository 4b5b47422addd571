"""Connections by the sockets of VMs, while other VMs come and go: each is in the VM whose socket it is, and
none in another, whatever VM it asks for. FAIRGV_TEST_CONNECTIONS says how many.
"""
import os
import random
import re
import socket
import struct
import subprocess
import threading

import wire
from harness import BUILD, PATIENCE_S, backend, expect, main, wait_until

CONNECTIONS = int(os.environ.get("FAIRGV_TEST_CONNECTIONS", "400"))
THREADS = 8
NAMES = [f"vm{i}" for i in range(16)]
TOP = 'window = "64M"; starts = 1000000; starts_burst = 1000000;'


def quota(name):
    """No two VMs have the same."""
    return (NAMES.index(name) + 1) << 20


def settings(name):
    return f'memory = "{quota(name)}"; socket = "{{folder}}/{name}/socket";'


class Count:
    """What the threads have seen, under a lock."""

    def __init__(self):
        self.lock = threading.Lock()
        self.done = {"session": 0, "view": 0, "refused": 0}
        self.wrong = []

    def add(self, kind, wrong):
        with self.lock:
            self.done[kind] += 1
            self.wrong += wrong


def connect(path, message):
    """The answer, and whether descriptors came with it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.settimeout(PATIENCE_S)
        connection.connect(path)
        connection.send(message)
        answer, fds, _, _ = socket.recv_fds(connection, wire.VIEW_LEN, 2)
        for fd in fds:
            os.close(fd)
        return answer, bool(fds)


def one(daemon, number, count):
    dice = random.Random(number)
    name = dice.choice(NAMES)
    asked = dice.choice(["", "", name, dice.choice(NAMES)])
    kind = dice.choice([wire.HELLO, wire.LOOK])
    answer, has_fds = connect(f"{daemon.folder}/{name}/socket", wire.hello(asked, f"of-{name}", kind))
    if asked not in ("", name):
        wrong = wire.status(answer) == 0 or has_fds
        count.add("refused", [f"{number}: {asked} by the socket of {name}"] if wrong else [])
    elif kind == wire.HELLO:
        got = wire.name_at(answer, wire.WELCOME_VM)
        wrong = wire.status(answer) or not has_fds or got != name
        count.add("session", [f"{number}: a session of {got}, not {name}: status {wire.status(answer)}"] if wrong else [])
    else:
        got = wire.name_at(answer, wire.VIEW_VM), struct.unpack_from("<Q", answer, wire.VIEW_MEMORY)[0]
        count.add("view", [f"{number}: a view of {got}, not {name}"] if got != (name, quota(name)) else [])


def some(daemon, first, count):
    for number in range(first, CONNECTIONS, THREADS):
        try:
            one(daemon, number, count)
        except OSError as error:
            count.add("view", [f"{number}: {error}"])


def come_and_go(daemon, ended, rounds, count):
    """Other VMs with sockets of their own, whose descriptors are numbers that others had."""
    text = daemon.config.read_text()
    while not ended.is_set():
        guests = "".join(f', {{ name = "guest{(rounds[0] + i) % 5}"; socket = "{daemon.folder}/g{i}/socket"; }}'
                         for i in range(rounds[0] % 4))
        daemon.config.write_text(text.replace(" );", f"{guests} );"))
        done = subprocess.run([BUILD / "tools/fairgvctl", "--socket", daemon.control, "reload"],
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        if done.returncode:
            count.wrong.append(f"reload {rounds[0]}: {done.stderr}")
            return
        rounds[0] += 1


def none_is_in_a_wrong_vm():
    with backend({name: settings(name) for name in NAMES}, top=TOP) as daemon:
        count, ended, rounds = Count(), threading.Event(), [0]
        threads = [threading.Thread(target=some, args=(daemon, i, count)) for i in range(THREADS)]
        changer = threading.Thread(target=come_and_go, args=(daemon, ended, rounds, count))
        for thread in (changer, *threads):
            thread.start()
        for thread in threads:
            thread.join()
        ended.set()
        changer.join()
        expect(not count.wrong, "\n".join(count.wrong[:20]))
        print(f"{count.done}, while the configuration was read {rounds[0]} times")
        expect(sum(count.done.values()) == CONNECTIONS and rounds[0] > 0, f"{count.done}, {rounds}")
        wait_until(lambda: not daemon.children(), "the sessions' ends")
        logged = re.findall(r'session \d+: vm (\S+), program "of-(\S+)": begins', daemon.log())
        expect(len(logged) == count.done["session"] and all(vm == name for vm, name in logged),
               f"the log has {len(logged)} sessions: {[pair for pair in logged if pair[0] != pair[1]]}")


main(none_is_in_a_wrong_vm)
