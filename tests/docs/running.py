"""A host to try commands on: what was installed is at its place, no daemon of the system's is seen, and what
is written to /etc, /var/lib and /run goes away with the namespace in which all of this runs.
"""
import contextlib
import json
import os
import pathlib
import pty
import re
import select
import signal
import socket
import subprocess
import sys

import install
from harness import BUILD, PATIENCE_S, Failure, expect, wait_until

DIRS = install.DIRS
TOOLKIT = pathlib.Path(re.search(r"^NVCC = (.*)$", (BUILD / "Makefile").read_text(), re.M)[1]).parent
USERS = re.compile(r'"(?:root|alice|bob|libvirt-qemu|fairgv-metrics)"')
# What the packages call their folders, as pages do.
FOLDERS = (("/etc/fairgv", DIRS["sysconfdir"] / "fairgv"), ("/usr/share/doc/fairgv-doc", DIRS["docdir"]),
           ("/usr/local", DIRS["prefix"]))
PROGRAM = """#include <cstdio>
__global__ void twice(int *value) { *value *= 2; }
int main()
{
	int value = 21, *there;
	cudaMalloc(&there, sizeof(value));
	cudaMemcpy(there, &value, sizeof(value), cudaMemcpyDefault);
	twice<<<1, 1>>>(there);
	cudaMemcpy(&value, there, sizeof(value), cudaMemcpyDefault);
	std::printf("%d %s\\n", value, cudaGetErrorString(cudaGetLastError()));
	return value != 42;
}
"""


def translated(text):
    for name, folder in FOLDERS:
        text = re.sub(rf"(?<![\w/]){re.escape(name)}(?![\w-])", str(folder), text)
    return text


class Host:
    """One for each page, in @folder."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.said = []                      # what the commands have printed
        self.processes = {}                 # by unit, or "daemon"
        self.session = None
        for name, target in (("build", BUILD), ("docs", install.SOURCE / "docs")):
            (self.folder / name).symlink_to(target)
        for name in ("/etc/modprobe.d", "/etc/udev/rules.d"):      # which every host with a GPU has
            pathlib.Path(name).mkdir(parents=True, exist_ok=True)
        (self.folder / "program.cu").write_text(PROGRAM)
        path = [DIRS["bindir"], DIRS["sbindir"], TOOLKIT, os.environ["PATH"]]
        self.env = {**os.environ, "PATH": ":".join(map(str, path)), "FAIRGV_DUMPABLE": "1", "TERM": "xterm"}
        self.configure('vms = ( { name = "local"; users = ["root"]; }, { name = "vm1"; users = ["root"]; }, '
                       '{ name = "vm2"; users = ["root"]; } );')

    def begin(self):
        """The service, for pages of a host on which it runs."""
        self.make_program()
        self.start("fairgv")

    def make_program(self):
        if not (self.folder / "program").exists():
            self.run("nvcc program.cu -o program")

    # --- Configurations -------------------------------------------------------------------------

    def configure(self, text):
        """What a page shows, with users of this machine, and what it leaves to the reader."""
        text = USERS.sub(f'"{os.getuid()}"', translated(text)).replace('gpu = "auto"', 'gpu = "soft"')
        if not re.search(r"^gpu = ", text, re.M):
            text = f'gpu = "soft";\n{text}'
        if not re.search(r"^vms = ", text, re.M):
            text += f'\nvms = ( {{ name = "local"; users = ["{os.getuid()}"]; }} );\n'
        for path in (self.folder / "backend.conf", install.CONFIG):
            path.write_text(text)
        if "@include" not in text:          # of a file that the page makes later
            self.run("fairgv-backend --config backend.conf --check")

    # --- Commands -------------------------------------------------------------------------------

    def do(self, how, text):
        text = translated(text.strip())
        policy = re.search(r"# .*\(policy (\w+)\)", text)
        if policy:
            self.with_policy(policy[1])
        if "{SESSION}" in text:
            text = text.replace("{SESSION}", str(self.some_session()))
        text = text.replace("{BUILD}", str(BUILD))
        if "./program" in text:
            self.make_program()
        getattr(self, how)(text)

    def shell(self, text):
        return subprocess.run(["sh", "-c", text], cwd=self.folder, env=self.env, text=True, check=False,
                              capture_output=True, stdin=subprocess.DEVNULL, timeout=PATIENCE_S)

    def run(self, text):
        done = self.shell(text)
        expect(done.returncode == 0, f"{text}: status {done.returncode}: {done.stdout}{done.stderr}{self.logs()}")
        self.said.append(done.stdout)

    def any(self, text):
        done = self.shell(text)
        expect(done.returncode in (0, 1) and done.stdout and "usage" not in done.stderr, f"{text}: {done}")

    def fails(self, text):
        """It says what the page's comment says."""
        done = self.shell(text)
        why = text.split("# ")[1].strip()
        expect(done.returncode != 0 and why in (done.stdout + done.stderr).lower(), f"{text}: {done}")

    def endless(self, text):
        """On a terminal, until it has drawn something and is told to end."""
        ours, theirs = pty.openpty()
        with subprocess.Popen(["sh", "-c", f"exec {text}"], cwd=self.folder, env=self.env, stdin=theirs,
                              stdout=theirs, stderr=theirs, start_new_session=True) as process:
            os.close(theirs)
            expect(select.select([ours], [], [], PATIENCE_S)[0], f"{text} says nothing")
            os.write(ours, b"q")
            with contextlib.suppress(OSError):      # the end of a terminal
                while select.select([ours], [], [], PATIENCE_S)[0] and os.read(ours, 4096):
                    pass
            expect(process.wait(PATIENCE_S) == 0, f"{text}: status {process.returncode}")
        os.close(ours)

    # --- Daemons --------------------------------------------------------------------------------

    def daemon(self, text):
        self.stop("fairgv")
        self.launch("fairgv", ["sh", "-c", f"exec {text}"])

    def service(self, text):
        """systemctl's words, by the lines of the units."""
        words = text.split("#")[0].replace("sudo ", "").split()[1:]
        verb, units = words[0], [word for word in words[1:] if not word.startswith("-")]
        for unit in units:
            if verb in ("restart", "stop"):
                self.stop(unit)
            if verb in ("restart", "start") or (verb == "enable" and "--now" in words):
                self.start(unit)
            if verb == "reload":
                self.run(self.line(unit, "ExecReload"))
            expect(verb in ("restart", "stop", "start", "enable", "reload"), f"{verb}: nobody knows how")

    def line(self, unit, key):
        text = (DIRS["systemunitdir"] / f"{unit}.service").read_text()
        found = re.search(rf"^{key}=(.*)$", text, re.M)
        expect(found, f"{unit} has no {key}")
        return found[1]

    def start(self, unit):
        if unit in self.processes:
            return
        text = (DIRS["systemunitdir"] / f"{unit}.service").read_text()
        for key, folder in (("StateDirectory", "/var/lib"), ("RuntimeDirectory", DIRS["runstatedir"])):
            for name in re.findall(rf"^{key}=(.*)$", text, re.M):
                pathlib.Path(folder, name).mkdir(exist_ok=True)
        self.launch(unit, self.line(unit, "ExecStart").split())

    def launch(self, unit, command):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices, \
                open(self.folder / f"{unit}.log", "a", encoding="utf-8") as log:
            path = self.folder / f"{unit}.notify"
            path.unlink(missing_ok=True)
            notices.bind(str(path))
            notices.settimeout(1)
            process = subprocess.Popen(command, cwd=self.folder, stderr=log,
                                       env={**self.env, "NOTIFY_SOCKET": str(path)})
            self.processes[unit] = process
            self.await_ready(process, notices, command)

    def await_ready(self, process, notices, command):
        for _ in range(PATIENCE_S):
            expect(process.poll() is None, f"{command} has ended: {self.logs()}")
            with contextlib.suppress(socket.timeout):
                if "READY=1" in notices.recv(4096).decode():
                    return
        raise Failure(f"{command} does not get ready: {self.logs()}")

    def stop(self, unit):
        process = self.processes.pop(unit, None)
        if process:
            process.terminate()
            expect(process.wait(PATIENCE_S) == 0, f"{unit}: status {process.returncode}: {self.logs()}")

    def logs(self):
        return "".join(path.read_text() for path in self.folder.glob("*.log"))

    def with_policy(self, policy):
        config = self.folder / "backend.conf"
        text = re.sub(r"^policy = .*\n", "", config.read_text(), flags=re.M)
        for path in (config, install.CONFIG):
            path.write_text(f'policy = "{policy}";\n{text}')
        self.stop("fairgv")
        self.start("fairgv")

    def sessions(self):
        done = self.shell("fairgvctl list --json")
        return [session for vm in json.loads(done.stdout)["vms"] for session in vm["sessions"]]

    def some_session(self):
        """The number of one that does not end by itself."""
        self.session = subprocess.Popen(
            [DIRS["bindir"] / "fairgv-run", BUILD / "workloads/matmul", "--size", "64", "--iterations", "10000000"],
            env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        wait_until(self.sessions, "a session")
        return self.sessions()[0]["number"]

    def qmp(self, text):
        """What the text tells QEMU: as JSON, and with the names that fairgv-vm gives."""
        requests = re.sub(r"^ *\(.*\)\n", "", text, flags=re.M)
        decoder, at, printed = json.JSONDecoder(), 0, " ".join(self.said)
        while at < len(requests):
            request, at = decoder.raw_decode(requests, at)
            at += len(requests[at:]) - len(requests[at:].lstrip())
            names = [request["arguments"].get(key) for key in ("id", "bus", "chardev", "driver")]
            expect(all(name in printed for name in names if name), f"fairgv-vm prints no {names}")

    def end(self):
        for unit in reversed(list(self.processes)):
            self.stop(unit)
        if self.session:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.session.pid, signal.SIGKILL)
            self.session.wait()
