"""A program that knows where all memory of its vGPU process lies does not get its own work taken
for done by writing there: forge.cu tries. Root's, as it looks into that process.
"""
import pathlib
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "local"))
from harness import backend, expect, finish, main

USED_AT_LEAST_NS = 1_500_000_000     # of the two seconds that the kernel runs


def private_memory(pid):
    """What no file is behind, as forge wants it."""
    lines = []
    for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines():
        span, rights, _, _, inode, *path = line.split()
        if rights == "rw-p" and inode == "0" and path in ([], ["[heap]"]):
            lines.append(span)
    return "\n".join([*lines, "", ""])


def forge():
    with backend({"vm1": 'memory = "1G";'}) as daemon:
        program = daemon.start("vm1", "tests/gpu/hostile/forge", stdin=subprocess.PIPE)
        expect(program.stdout.readline() == "READY\n", "forge did not start")
        (pid,) = daemon.children()
        program.stdin.write(private_memory(pid))
        program.stdin.flush()
        status, out, err = finish(program)
        expect(status == 0, f"forge: status {status}: {out}{err}")
        (vm,) = daemon.report()["vms"]
        expect(vm["gpu_ns"] >= USED_AT_LEAST_NS, f"charged are {vm['gpu_ns']} ns")
        print(out, end="")


main(forge)
