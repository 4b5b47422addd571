"""What the end-to-end tests share: a backend of their own, programs run through it,
and a look at what is left when they are gone.

Each test is a program that ends with 0, or prints why not and ends with 1.
"""
import collections
import contextlib
import importlib.util
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "bench/modules"))
from backend_process import BackendProcess

BUILD = pathlib.Path(os.environ.get("abs_top_builddir", "."))
RUN = BUILD / "tools/fairgv-run"
BACKEND = BUILD / "backend/fairgv-backend"
# What only a hang exceeds, however busy the machine is.
PATIENCE_S = int(os.environ.get("FAIRGV_TEST_PATIENCE_S", "240"))

# Who runs the tests looks into the daemon, root or not.
os.environ.setdefault("FAIRGV_DUMPABLE", "1")


class Failure(Exception):
    pass


def needs(module):
    """Goes on in Debian's Python, which has Debian's modules, where this one lacks @module; without one
    that has it the test is skipped.
    """
    if importlib.util.find_spec(module):
        return
    debian = "/usr/bin/python3"
    if os.path.realpath(sys.executable) != os.path.realpath(debian) and os.path.exists(debian):
        os.execv(debian, [debian, *sys.argv])
    print(f"skipped: there is no Python module {module} (quickstart check installs its package)")
    sys.exit(77)


def expect(condition, what):
    if not condition:
        raise Failure(what)


def wait_until(condition, what):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        expect(time.monotonic() < deadline, f"waited in vain for: {what}")
        time.sleep(0.01)


def is_herald(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"fairgv-herald\0")
    except OSError:
        return False


class Backend(BackendProcess):
    """A daemon on the soft GPU, unless told otherwise, and what it has beside its sessions. It
    keeps so many processes ready on each GPU; with none, all that it has are sessions'.
    """

    def __init__(self, vms, gpu=os.environ.get("FAIRGV_TEST_GPU", "soft"), top="", warm=0):
        super().__init__(BACKEND, vms, gpu, f"warm = {warm}; {top}")

    def launch(self):
        super().launch()
        expect(self.ready_line, f"the backend did not start: {self.log()}")
        self.descriptors_at_rest = self.descriptors()
        self.files_at_rest = self.open_files()

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def open_files(self):
        """What its descriptors are, and how many of each: "3 /dev/null, 2 socket"."""
        targets = collections.Counter()
        for link in pathlib.Path(f"/proc/{self.process.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                targets[os.readlink(link).split(":[")[0]] += 1
        return ", ".join(f"{count} {target}" for target, count in sorted(targets.items()))

    def children(self):
        """The process ids of its vGPU processes. A QEMU that is connected has a herald."""
        path = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in path.read_text().split() if not is_herald(pid)]

    def report(self):
        """What the daemon tells its administrator."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE_S)
            connection.connect(f"{self.socket}.control")
            connection.sendall(b'{"request": "stat"}\n')
            with connection.makefile(encoding="utf-8") as reply:
                return json.load(reply)

    def start(self, vm, program, *arguments, env=None, stdin=None):
        """Runs a built program in @vm; its own process group, output captured."""
        return subprocess.Popen(
            [RUN, "--socket", self.socket, "--vm", vm, "--", BUILD / program,
             *map(str, arguments)],
            stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True, env={**os.environ, **(env or {})})

    def expect_at_rest(self):
        """No process and no descriptor of a session is left, and the daemon lives."""
        expect(self.process.poll() is None, f"the backend has ended: {self.log()}")
        wait_until(lambda: not self.children(), "the vGPU processes' end")
        wait_until(lambda: self.descriptors() == self.descriptors_at_rest,
                   f"the backend's descriptors: {self.descriptors_at_rest} at rest, "
                   f"{self.descriptors()} now")

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(PATIENCE_S)
        expect(self.process.returncode == 0, f"the backend's status: {self.process.returncode}")
        expect(not self.socket.exists(), "the backend left its socket behind")
        super().stop()


@contextlib.contextmanager
def backend(vms, **options):
    daemon = Backend(vms, **options)
    try:
        yield daemon
    except BaseException:
        sys.stderr.write(daemon.log())
        daemon.process.kill()
        daemon.process.wait()
        raise
    daemon.stop()


def finish(process):
    """Waits for a program; its status, its output and what it wrote to stderr."""
    try:
        out, err = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise Failure(f"{process.args} hangs") from None
    return process.returncode, out, err


def expect_verified(process, what):
    status, out, err = finish(process)
    expect(status == 0 and "verified=yes" in out, f"{what}: status {status}: {out}{err}")


def kill(process):
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def main(*tests):
    for test in tests:
        try:
            test()
        except Failure as failure:
            print(f"{test.__name__}: {failure}")
            sys.exit(1)
        print(f"{test.__name__}: passed")
