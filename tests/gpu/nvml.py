"""nvidia-smi, and pynvml if it is there, in a VM with a quota of 8 GiB: on a machine with a GPU, in a
bundle. What they print goes to $OUT, if that is set.

usage: tests/gpu/nvml.py, with abs_top_builddir as for tests/local/
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "local"))
from harness import PATIENCE_S, RUN, backend, expect, kill, main, wait_until

MATMUL = "workloads/matmul"
FOREVER = ("--size", 1024, "--iterations", 100000000)
VMS = {"vm1": 'memory = "8G";', "vm2": 'memory = "4G";'}
MIB = 8192


def keep(name, text):
    if os.environ.get("OUT"):
        pathlib.Path(os.environ["OUT"], f"{name}.txt").write_text(text, encoding="utf-8")


def through(daemon, vm, *command, env=None):
    """What a command that must succeed prints in @vm; what it asked in vain goes with it to $OUT."""
    done = subprocess.run([RUN, "--stats", "--socket", daemon.socket, "--vm", vm, "--", *command],
                          capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                          env={**os.environ, **(env or {})})
    keep("-".join(re.sub(r"\W+", "_", word) for word in command)[:60], done.stdout + done.stderr)
    expect(done.returncode == 0,
           f"{' '.join(command)}: status {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def smi(daemon, *arguments, vm="vm1"):
    return through(daemon, vm, "nvidia-smi", *arguments)


def query(daemon, vm, *fields):
    """The first GPU's, as words; there is one."""
    out = smi(daemon, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits", vm=vm)
    lines = out.strip().splitlines()
    expect(len(lines) == 1, f"one GPU: {out}")
    return [word.strip() for word in lines[0].split(",")]


def idle():
    with backend(VMS, gpu="cuda") as daemon:
        table = smi(daemon)
        expect(re.search(rf"\b0MiB */ *{MIB}MiB", table), f"the table: {table}")
        expect(f"{MIB} MiB" in smi(daemon, "-q"), "-q: its memory")
        [name, uuid, total, used] = query(daemon, "vm1", "name", "uuid", "memory.total", "memory.used")
        expect([total, used] == [str(MIB), "0"], f"--query-gpu: {total}, {used}")
        expect(f"{name} (UUID: {uuid})" in smi(daemon, "-L"), "-L: name and UUID")
        smi(daemon, "pmon", "-c", "1")
        expect(not daemon.children(), "nvidia-smi started a session")
        daemon.expect_at_rest()


def busy():
    with backend(VMS, gpu="cuda") as daemon:
        programs = {vm: daemon.start(vm, MATMUL, *FOREVER) for vm in VMS}

        def works(vm):
            used, busy = query(daemon, vm, "memory.used", "utilization.gpu")
            return int(used) > 0 and int(busy) > 0

        for vm in VMS:
            wait_until(lambda vm=vm: works(vm), f"use of the GPU by {vm}")
        for vm, program in programs.items():
            others = [str(other.pid) for other in programs.values() if other is not program]
            for what in (smi(daemon, vm=vm), smi(daemon, "pmon", "-c", "1", vm=vm),
                         smi(daemon, "-q", vm=vm)):
                words = what.split()
                expect(str(program.pid) in words, f"{vm}: its process {program.pid}: {what}")
                expect(not set(others) & set(words), f"{vm}: another VM's process: {what}")
        for program in programs.values():
            kill(program)
        daemon.expect_at_rest()


def pynvml():
    ask = ("import pynvml as n; n.nvmlInit(); h = n.nvmlDeviceGetHandleByIndex(0);"
           "print(n.nvmlDeviceGetMemoryInfo(h).total >> 20, n.nvmlDeviceGetName(h),"
           "n.nvmlDeviceGetUtilizationRates(h).gpu)")
    if subprocess.run([sys.executable, "-c", "import pynvml"], stderr=subprocess.DEVNULL,
                      check=False).returncode:
        print("pynvml: not here")
        return
    with backend(VMS, gpu="cuda") as daemon:
        out = through(daemon, "vm1", sys.executable, "-W", "ignore", "-c", ask)
        expect(out.startswith(f"{MIB} "), out)
        daemon.expect_at_rest()


if not shutil.which("nvidia-smi"):
    sys.exit("nvml: there is no nvidia-smi here")
main(idle, busy, pynvml)
