"""A guest: QEMU under TCG, a Debian kernel, an initramfs.

    with Guest(kernel, devices=ivshmem(socket, vectors), programs={"bin/x": path}) as guest:
        guest.expect("x --help")            # its output
        job = guest.start("x forever")      # in the background
        job.kill()

Commands go over the second serial port, one at a time. Leaving the block powers the guest
off, and fails if its kernel has complained of anything in the meantime.

launcher is what QEMU is started by: fairgv-vm and its arguments. With wait=False the guest
boots while its maker does other things; await_boot() then waits for it.
"""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile

import tsc
from common import PATIENCE_S, Failure, expect, require, wait_until
from initramfs import Archive, add_base

QEMU = "qemu-system-x86_64"
HERE = pathlib.Path(__file__).resolve().parent
# Two processors: with one, QEMU's locked instructions are not atomic against the host.
# cx16 off: QEMU 7.2's cmpxchg16b leaves wrong flags behind, which kernel 6.12 dies of.
TCG = ("-accel", "tcg,thread=multi", "-cpu", "max,cx16=off", "-smp", "2")
KVM = ("-accel", "kvm", "-cpu", "host", "-smp", "2")
COMPLAINTS = re.compile(
    r"WARNING:|BUG:|BUG |Oops|general protection|Call Trace|rcu.*stall|refcount_t|UBSAN|KASAN|"
    r"hung task|blocked for more than|soft lockup|Kernel panic|unable to handle|Bad page|"
    r"invalid memtype|conflicting memory types|nobody cared|leaked")


def ivshmem(path, vectors, reserve="4G"):
    """The region's device. The root port's reserve is what lets it be mapped write-back."""
    port = "pcie-root-port,id=rp" + (f",pref64-reserve={reserve}" if reserve else "")
    return ["-chardev", f"socket,path={path},id=iv", "-device", port,
            "-device", f"ivshmem-doorbell,bus=rp,chardev=iv,vectors={vectors}"]


def require_qemu():
    require(QEMU, "busybox", "setpriv")


class Job:
    """A command in the background of a guest."""
    count = 0

    def __init__(self, guest, command):
        Job.count += 1
        self.guest = guest
        self.stem = f"/tmp/job{Job.count}"
        guest.expect(f"(sh -c 'echo $$ >{self.stem}.pid; exec {command}' >{self.stem}.out 2>&1; "
                     f"echo $? >{self.stem}.status) & while ! test -s {self.stem}.pid; do :; done")
        self.pid = int(guest.expect(f"cat {self.stem}.pid"))

    def output(self):
        return self.guest.expect(f"cat {self.stem}.out")

    def wait_for(self, text):
        wait_until(lambda: text in self.output() or self.ended(), f"{text!r}")
        expect(text in self.output(), f"no {text!r} but: {self.output()}")

    def ended(self):
        return self.guest.run(f"test -s {self.stem}.status")[0] == 0

    def wait(self):
        """Its status, 128 and the signal where one killed it."""
        wait_until(self.ended, f"the end of job {self.pid}: {self.output()}")
        return int(self.guest.expect(f"cat {self.stem}.status"))

    def kill(self, signum=signal.SIGKILL):
        self.guest.expect(f"kill -{int(signum)} {self.pid}")
        return self.wait()


class Guest:
    def __init__(self, kernel, devices=(), programs=None, files=None, memory_mb=256, append="",
                 launcher=(), machine=TCG, wait=True):
        require_qemu()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fairgv-vm-"))
        self.kernel_log = ""
        self.received = b""
        self.make_initramfs(programs or {}, files or {})
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.folder / "agent"))
        self.listener.listen(1)
        self.start_qemu(kernel, devices, memory_mb, append, launcher, machine)
        if wait:
            self.await_boot()

    def await_boot(self):
        try:
            with self.listener:
                self.agent = self.accept(self.listener)
            self.agent.settimeout(PATIENCE_S)
            expect(self.read_line() == "ready", "the guest's agent says something odd")
        except BaseException:
            self.kill()
            raise

    def make_initramfs(self, programs, files):
        archive = Archive()
        add_base(archive, HERE / "init.sh")
        for name, source in programs.items():
            archive.add_program(name, source)
        for name, source in files.items():
            archive.add_file(name, source)
        archive.write(self.folder / "initramfs")

    def start_qemu(self, kernel, devices, memory_mb, append, launcher, machine):
        command = [
            "setpriv", "--pdeathsig", "KILL", *launcher, QEMU, "-machine", "q35", *machine,
            "-m", str(memory_mb), "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-kernel", kernel.image, "-initrd", self.folder / "initramfs",
            "-qmp", f"unix:{self.folder / 'qmp'},server=on,wait=off",
            # no_timer_check: a late timer, on a busy host, is taken for a broken one.
            "-append", f"console=ttyS0 quiet panic=-1 tsc=reliable no_timer_check "
                       f"tsc_early_khz={tsc.measure_khz()} {append}",
            "-serial", f"file:{self.folder / 'console'}",
            "-chardev", f"socket,id=agent,path={self.folder / 'agent'}", "-serial", "chardev:agent",
            *devices]
        with open(self.folder / "qemu", "w", encoding="utf-8") as out:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=out)

    def accept(self, listener):
        listener.settimeout(0.1)
        for _ in range(PATIENCE_S * 10):
            try:
                return listener.accept()[0]
            except socket.timeout:
                expect(self.process.poll() is None, f"QEMU has ended: {self.complaint()}")
        raise Failure("QEMU does not open its serial port")

    def complaint(self):
        texts = [(self.folder / name).read_text(errors="replace") for name in ("qemu", "console")
                 if (self.folder / name).exists()]
        status = self.process.poll()
        return "".join(texts)[-6000:] + ("" if status is None else f"QEMU's status: {status}")

    def read_more(self):
        try:
            more = self.agent.recv(65536)
        except socket.timeout:
            raise Failure(f"the guest hangs: {self.complaint()}") from None
        except ConnectionResetError:
            more = b""
        expect(more, f"the guest has ended: {self.complaint()}")
        self.received += more

    def read_line(self):
        while b"\n" not in self.received:
            self.read_more()
        line, self.received = self.received.split(b"\n", 1)
        return line.decode()

    def read_bytes(self, count):
        while len(self.received) < count:
            self.read_more()
        data, self.received = self.received[:count], self.received[count:]
        return data

    def run(self, command):
        """Runs a shell command there; its status, and its output with what went to stderr."""
        assert "\n" not in command
        try:
            self.agent.sendall(command.encode() + b"\n")
        except OSError:
            raise Failure(f"the guest has ended: {self.complaint()}") from None
        status, count = self.read_line().split()
        return int(status), self.read_bytes(int(count)).decode(errors="replace")

    def expect(self, command):
        """The output of a command that succeeds."""
        status, output = self.run(command)
        expect(status == 0, f"{command}: status {status}: {output}")
        return output

    def start(self, command):
        return Job(self, command)

    def read_kernel_log(self):
        """What is new in it; a complaint is a failure."""
        new = self.run("dmesg -c")[1]
        self.kernel_log += new
        bad = COMPLAINTS.search(new)
        expect(not bad, f"the guest's kernel complains: {new}")
        return new

    def power_off(self):
        self.read_kernel_log()
        self.agent.sendall(b"poweroff -f\n")
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise Failure("the guest does not power off") from None
        console = (self.folder / "console").read_text(errors="replace")
        expect(not COMPLAINTS.search(console), f"the guest's console: {console[-6000:]}")

    def kill(self):
        """As a host's administrator might."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if os.environ.get("FAIRGV_VM_KEEP") and self.folder.exists():
            shutil.copytree(self.folder, f"{os.environ['FAIRGV_VM_KEEP']}/{self.folder.name}",
                            ignore=shutil.ignore_patterns("initramfs", "agent", "qmp"))
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self.power_off()
        finally:
            self.kill()
