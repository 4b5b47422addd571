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


def title(pid):
    """What a process is called, which may have ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


# What the daemon has open for a process that keeps a VM's images (backend/keeper.c): it is spoken
# with by the one, and its log lines come by the other.
OF_A_KEEPER = ("socket", "pipe")


def tell(files):
    return ", ".join(f"{count} {name}" for name, count in sorted(files.items()))


class Backend(BackendProcess):
    """A daemon on the soft GPU, unless told otherwise, and what it has beside its sessions. It
    keeps so many processes ready on each GPU; with none, all that it has are sessions'.
    """

    def __init__(self, vms, gpu=os.environ.get("FAIRGV_TEST_GPU", "soft"), top="", warm=0):
        super().__init__(BACKEND, vms, gpu, f"warm = {warm}; {top}")

    def launch(self):
        super().launch()
        expect(self.ready_line, f"the backend did not start: {self.log()}")
        self.settle()

    def settle(self):
        """What it has open now is what it has at rest."""
        self.files_at_rest = self.files()

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def files(self):
        """What its descriptors are, and how many of each, but for those of keepers that there are."""
        found = collections.Counter()
        for link in pathlib.Path(f"/proc/{self.process.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                found[os.readlink(link).split(":[")[0]] += 1
        for _ in self.keepers():
            found.subtract(OF_A_KEEPER)
        return {name: count for name, count in found.items() if count}

    def children(self):
        """The process ids of its vGPU processes. A QEMU that is connected has a herald."""
        path = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in path.read_text().split()
                if not title(pid).startswith("fairgv-herald\0")]

    def keepers(self):
        """Those of them that keep a VM's images, and live as long as the VM."""
        return [pid for pid in self.children() if ", keeper" in title(pid)]

    def served(self):
        """The others, which have a session or wait for one."""
        return [pid for pid in self.children() if ", keeper" not in title(pid)]

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
        wait_until(lambda: not self.served(), "the vGPU processes' end")
        try:
            wait_until(lambda: self.files() == self.files_at_rest, "the backend's descriptors")
        except Failure as failure:
            raise Failure(f"{failure}: at rest {tell(self.files_at_rest)}, now {tell(self.files())}, "
                          f"beside those of {len(self.keepers())} keepers") from failure

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
