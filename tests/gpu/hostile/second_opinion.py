"""A vGPU process that takes GPU memory which its session is not charged for is found by the
driver's own figures, and its session is ended; one that has all of its quota goes on. A client of
MPS does not even get it, by MPS's own limit. taken.c plays the process that its guest has taken
over. On a machine with an NVIDIA GPU.

usage: second_opinion.py [CONTEXT...]     isolated, mps; both, if none is named
"""
import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "local"))
from harness import BUILD, backend, expect, finish, main, wait_until

PROGRAM = "tests/gpu/hostile/hostile"
TAKEN_KIB = 12345       # by which taken.so knows that it is to take more
VMS = {"taken": 'memory = "1G";', "honest": 'memory = "1G";'}
TAKEN = {"isolated": "done 1 cudaSuccess\n", "mps": "done 0 cudaErrorMemoryAllocation\n"}
ENDED = re.compile(r"^.*\bthe driver counts \d+ MiB of GPU memory in use, of which \d+ MiB were "
                   r"charged.*$", re.MULTILINE)


def start(daemon, vm, *arguments):
    program = daemon.start(vm, PROGRAM, *arguments, stdin=subprocess.PIPE)
    line = program.stdout.readline()
    expect(line.startswith("done "), f"{vm}: {line!r}\n{daemon.log()}")
    return program, line


def is_ended(context):
    os.environ["LD_PRELOAD"] = str(BUILD / "tests/gpu/hostile/taken.so")
    with backend(VMS, gpu="cuda", top=f'context = "{context}";') as daemon:
        del os.environ["LD_PRELOAD"]
        honest, _ = start(daemon, "honest", "memory")
        taken, line = start(daemon, "taken", "one", TAKEN_KIB << 10)
        begun = time.monotonic()
        expect(line == TAKEN[context], f"the process that takes more: {line!r}")
        if context == "mps":
            print("mps: refused by MPS's own limit", flush=True)
        else:
            wait_until(lambda: ENDED.search(daemon.log()), "the end of the session")
            print(f"{context}: ended after {time.monotonic() - begun:.1f} s: "
                  f"{ENDED.search(daemon.log())[0]}", flush=True)
            expect(len(ENDED.findall(daemon.log())) == 1, daemon.log())
        vms = {vm["name"]: vm for vm in daemon.report()["vms"]}
        expect(vms["honest"]["memory_bytes"] > 0, f"the other has been ended, too\n{daemon.log()}")
        for program in (taken, honest):
            program.stdin.close()
            program.stdin = None
            finish(program)


def test():
    for context in sys.argv[1:] or ("isolated", "mps"):
        is_ended(context)


main(test)
