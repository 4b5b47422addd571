"""Frozen memory in files: it leaves the host's memory, comes back as it was, and from nowhere else."""
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from counting import FAIRGVCTL, MIB, MOVABLE, SIZES, ask, counting, ctl, end, resident, session
from harness import PATIENCE_S, backend, expect, finish, kill, main, wait_until

TIMES = int(os.environ.get("FAIRGV_TEST_SAVES", "6"))
CHUNK = 24  # bytes before those that are stored
HEAD = 192


def daemon_with(folder, frozen_memory="1G", **vms):
    return backend({"vm1": MOVABLE, "vm2": MOVABLE, **vms},
                   top=f"frozen_memory = \"{frozen_memory}\";")


def host_bytes(daemon):
    """The private memory of the session's process, as the kernel says."""
    status = pathlib.Path(f"/proc/{session(daemon)['vgpu_pid']}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("RssAnon:")]
    return int(line.split()[1]) * 1024


def make_key(folder, name="key"):
    path = folder / name
    path.write_bytes(os.urandom(32))
    path.chmod(0o600)
    return path


def leaves_the_host(folder):
    with daemon_with(folder) as daemon:
        program = counting(daemon)
        ctl(daemon, "freeze", "vm1")
        frozen = host_bytes(daemon)
        said = ctl(daemon, "freeze", "vm1", "--to", folder / "a")
        saved = host_bytes(daemon)
        expect("saved" in said and str(folder / "a") in said, f"freeze says {said}")
        expect(frozen - saved > 20 * MIB, f"of the host's memory: {frozen}, then {saved}")
        expect(session(daemon)["state"] == "saved", f"the state: {session(daemon)}")
        expect(resident(daemon) < MIB, f"on the GPU yet: {resident(daemon)}")
        expect((folder / "a").stat().st_mode & 0o777 == 0o600, "others can read it")
        expect((folder / "a").stat().st_size < 8 * MIB, "it is not compressed")
        ask(program, 3)
        said = ctl(daemon, "thaw", "vm1", "--from", folder / "a")
        expect("running" in said, f"thaw says {said}")
        expect(program.stdout.readline() == "rounds 4\n", "not all rounds")
        end(program, "a program that was saved")
        daemon.expect_at_rest()


def many_times(folder):
    """With a key and without, whatever is asked meanwhile; each file is of its own time alone."""
    key, dice = make_key(folder), random.Random(5)
    with daemon_with(folder) as daemon:
        program = counting(daemon)
        for i in range(TIMES):
            keyed = ("--key-file", key) if i % 2 else ()
            ask(program, dice.randrange(5))
            ctl(daemon, "freeze", session(daemon)["number"], "--to", folder / f"file{i}", *keyed)
            ask(program, dice.randrange(5))
            if i > 1:
                old = ("--key-file", key) if not i % 2 else ()
                expect("another file" in ctl(daemon, "thaw", "vm1", "--from", folder / f"file{i - 1}",
                                             *old, fails=True), "an older file")
            ctl(daemon, "thaw", "vm1", "--from", folder / f"file{i}", *keyed)
        end(program, f"saved {TIMES} times")
        daemon.expect_at_rest()


def change(path, to, at):
    shutil.copy(path, to)
    with open(to, "r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 1]))


def expect_damage(daemon, path, text, *options):
    said = ctl(daemon, "thaw", "vm1", "--from", path, *options, fails=True)
    expect(text in said, f"{path.name}: {said}")
    expect(session(daemon)["state"] == "saved", f"{path.name}: {session(daemon)}")


def damage(daemon, folder, path, *options):
    """Files that are not as they were written; the session takes none of them."""
    size = path.stat().st_size
    for at in (9, 40, HEAD - 1, HEAD + 2, HEAD + 10, HEAD + CHUNK, size // 2, size - 1):
        change(path, folder / "bad", at)
        expect_damage(daemon, folder / "bad", "damaged" if at != 9 else "version", *options)
    whole = path.read_bytes()
    for cut in (0, 100, HEAD, HEAD + CHUNK + 5, size - CHUNK, size - 1):
        (folder / "bad").write_bytes(whole[:cut])
        expect_damage(daemon, folder / "bad", "incomplete" if cut >= HEAD else "not a file", *options)
    (folder / "bad").write_bytes(whole + b"x")
    expect_damage(daemon, folder / "bad", "behind its end", *options)
    (folder / "bad").write_bytes(b"x" * 1000)
    expect_damage(daemon, folder / "bad", "not a file", *options)


def is_checked(folder):
    key, other = make_key(folder), make_key(folder, "other")
    with daemon_with(folder) as daemon:
        program = counting(daemon)
        ctl(daemon, "freeze", "vm1", "--to", folder / "plain")
        damage(daemon, folder, folder / "plain")
        expect_damage(daemon, folder / "plain", "not encrypted", "--key-file", key)
        ctl(daemon, "thaw", "vm1", "--from", folder / "plain")
        ctl(daemon, "freeze", "vm1", "--to", folder / "secret", "--key-file", key)
        damage(daemon, folder, folder / "secret", "--key-file", key)
        expect_damage(daemon, folder / "secret", "another one", "--key-file", other)
        expect_damage(daemon, folder / "secret", "--key-file is missing")
        ctl(daemon, "thaw", "vm1", "--from", folder / "secret", "--key-file", key)
        end(program, "a program whose files were damaged")
        daemon.expect_at_rest()


def is_secret(folder):
    """Of what is encrypted nothing is to be seen, and no two files are alike."""
    key = make_key(folder)
    with daemon_with(folder) as daemon:
        program = counting(daemon)
        ctl(daemon, "freeze", "vm1")
        ctl(daemon, "freeze", "vm1", "--to", folder / "a", "--key-file", key)
        ctl(daemon, "thaw", "vm1", "--from", folder / "a", "--key-file", key)
        ctl(daemon, "freeze", "vm1", "--to", folder / "b", "--key-file", key)
        a, b = [(folder / name).read_bytes()[HEAD:] for name in "ab"]
        alike = sum(x == y for x, y in zip(a, b)) / min(len(a), len(b))
        expect(alike < 0.1, f"{alike} of two files is the same")
        ctl(daemon, "thaw", "vm1", "--from", folder / "b", "--key-file", key)
        end(program, "a program in encrypted files")
        daemon.expect_at_rest()


def is_refused(folder):
    key = make_key(folder)
    with backend({"vm1": MOVABLE, "vm2": MOVABLE, "vm3": "", "vm4": "movable = true; devices = [0, 1];"},
                 gpu="soft:2", top="frozen_memory = \"40M\";") as daemon:
        programs = {vm: counting(daemon, vm) for vm in ("vm1", "vm2", "vm3", "vm4")}

        def says(text, *arguments):
            said = ctl(daemon, *arguments, fails=True)
            expect(text in said, f"{arguments}: {said}")

        (folder / "there").write_text("mine")
        says("can't be made", "freeze", "vm1", "--to", folder / "there")
        expect((folder / "there").read_text() == "mine", "somebody's file")
        says("can't be made", "freeze", "vm1", "--to", folder / "nowhere/file")
        says("no VM", "freeze", "vm9", "--to", folder / "x")
        says("movable", "freeze", "vm3", "--to", folder / "x")
        says("2 GPUs", "freeze", "vm4", "--to", folder / "x")
        ctl(daemon, "thaw", "vm4")
        (folder / "open").write_bytes(b"k" * 32)
        (folder / "open").chmod(0o640)
        says("chmod 600", "freeze", "vm1", "--to", folder / "x", "--key-file", folder / "open")
        (folder / "short").write_bytes(b"k" * 15)
        (folder / "short").chmod(0o600)
        says("16 to 4096", "freeze", "vm1", "--to", folder / "x", "--key-file", folder / "short")
        says("can't be opened", "freeze", "vm1", "--to", folder / "x", "--key-file", folder / "none")
        says("not a regular file", "freeze", "vm1", "--to", folder / "x", "--key-file", "/dev/zero")
        expect(not (folder / "x").exists(), "a file of what was refused")
        expect(session(daemon)["state"] != "frozen", "frozen by what was refused")
        says("can't be opened", "thaw", "vm1", "--from", folder / "none")

        ctl(daemon, "freeze", "vm1", "--to", folder / "a", "--key-file", key)
        says("in a file already", "freeze", "vm1", "--to", folder / "x")
        says("thaw", "thaw", "vm1")
        ctl(daemon, "freeze", "vm1")
        # What is in a file takes none of frozen_memory.
        ctl(daemon, "freeze", "vm2")
        says("frozen_memory", "thaw", "vm1", "--from", folder / "a", "--key-file", key)
        ctl(daemon, "thaw", "vm2")
        says("has the memory of session", "thaw", "vm2", "--from", folder / "a", "--key-file", key)
        ctl(daemon, "thaw", "vm1", "--from", folder / "a", "--key-file", key)
        says("is not in a file", "thaw", "vm1", "--from", folder / "a", "--key-file", key)
        programs["another"] = counting(daemon, "vm2")
        says("has 2 sessions", "freeze", "vm2", "--to", folder / "x")
        for vm, program in programs.items():
            end(program, vm)
        daemon.expect_at_rest()


def ask_raw(daemon, request, *descriptors):
    """What the daemon answers to a request that comes with these."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PATIENCE_S)
        connection.connect(f"{daemon.socket}.control")
        text = json.dumps(request).encode() + b"\n"
        if descriptors:
            socket.send_fds(connection, [text[:1]], descriptors)
            connection.sendall(text[1:])
        else:
            connection.sendall(text)
        with connection.makefile(encoding="utf-8") as reply:
            return json.load(reply)


def asked_wrongly(folder):
    """Requests that fairgvctl does not make; none takes a descriptor of the daemon's for good."""
    with daemon_with(folder) as daemon:
        program = counting(daemon)
        number = session(daemon)["number"]
        save, load = {"request": "save", "session": number}, {"request": "load", "session": number}
        ours, theirs = socket.socketpair()
        packets, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with open(folder / "file", "wb") as file, ours, theirs, packets:
            for request, descriptors, text in (
                    (save, (), "a stream"), (save, (file.fileno(),), "a stream"),
                    (save, (packets.fileno(),), "a stream"), (save, (theirs.fileno(),), "not frozen"),
                    ({**save, "vm": "vm1"}, (theirs.fileno(),), "nothing else"),
                    ({"request": "save", "vm": "vm2"}, (theirs.fileno(),), "has no session"),
                    ({"request": "save", "vm": "vm9"}, (theirs.fileno(),), "no VM"),
                    (load, (theirs.fileno(),), "token"),
                    ({**load, "token": "0" * 31}, (theirs.fileno(),), "token"),
                    ({**load, "token": "g" * 32}, (theirs.fileno(),), "token"),
                    ({**load, "token": 7}, (theirs.fileno(),), "token"),
                    ({**load, "token": "0" * 32}, (theirs.fileno(),), "not in a file"),
                    ({"request": "stat", "vms": 1}, (theirs.fileno(),), "list of names")):
                said = ask_raw(daemon, request, *descriptors)
                expect(text in said.get("error", ""), f"{request}: {said}")
            # More than one: the first is taken, and the kernel drops the rest.
            said = ask_raw(daemon, save, packets.fileno(), theirs.fileno(), file.fileno())
            expect("a stream" in said.get("error", ""), f"several: {said}")
        end(program, "a program of which much was asked")
        daemon.expect_at_rest()


def stopped_in_between(folder):
    """Whoever has the file dies, at any time: the memory is where it was, and can be had again."""
    dice = random.Random(3)
    sizes = (160 * MIB, 1000)
    with daemon_with(folder) as daemon:
        program = counting(daemon, sizes=sizes)
        command = [FAIRGVCTL, "--socket", f"{daemon.socket}.control"]

        def begin_and_kill(*arguments):
            mover = subprocess.Popen([*command, *map(str, arguments)], stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL)
            time.sleep(dice.random() * 0.4)
            mover.send_signal(signal.SIGKILL)
            return mover.wait() == 0

        for i in range(TIMES):
            path = folder / f"file{i}"
            ask(program, 1)
            ctl(daemon, "freeze", "vm1")
            begin_and_kill("freeze", "vm1", "--to", path)
            wait_until(lambda: session(daemon)["state"] in ("frozen", "saved"), "the state")
            if session(daemon)["state"] == "frozen":
                path.unlink(missing_ok=True)
                # It may not have noticed yet that the other one has gone.
                wait_until(lambda p=path: try_save(daemon, p), "another try")
            begin_and_kill("thaw", "vm1", "--from", path)
            wait_until(lambda: session(daemon)["state"] in ("frozen", "saved", "thawing", "idle",
                                                            "waiting", "holding"), "the state")
            wait_until(lambda p=path: is_back(daemon, p), "it is back")
        end(program, "a program whose files were cut short")
        daemon.expect_at_rest()


def try_save(daemon, path):
    done = subprocess.run([FAIRGVCTL, "--socket", f"{daemon.socket}.control", "freeze", "vm1",
                           "--to", path], capture_output=True, text=True, check=False)
    return done.returncode == 0 or session(daemon)["state"] == "saved"


def is_back(daemon, path):
    """From the file, if it is there; and from the host's memory if it has got so far."""
    from_file = ("--from", path) if session(daemon)["state"] == "saved" else ()
    done = subprocess.run([FAIRGVCTL, "--socket", f"{daemon.socket}.control", "thaw", "vm1",
                           *map(str, from_file)], capture_output=True, text=True, check=False)
    return done.returncode == 0


def ends_while_saved(folder):
    with daemon_with(folder) as daemon:
        program = counting(daemon)
        ctl(daemon, "freeze", "vm1", "--to", folder / "a")
        kill(program)
        daemon.expect_at_rest()
        program = counting(daemon)
        ask(program, 1)
        ctl(daemon, "freeze", "vm1", "--to", folder / "b")
        ctl(daemon, "end", session(daemon)["number"])
        status, out, _ = finish(program)
        expect(status != 0 and "verified" not in out, f"ended: {status} {out}")
        daemon.expect_at_rest()


def in_a_folder(test):
    def run():
        with tempfile.TemporaryDirectory() as folder:
            test(pathlib.Path(folder))
    run.__name__ = test.__name__
    return run


main(*map(in_a_folder, (leaves_the_host, many_times, is_checked, is_secret, is_refused,
                        asked_wrongly, stopped_in_between, ends_while_saved)))
