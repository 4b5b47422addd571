"""Programs that count in memory that may move (freeze.cu), and what the daemon says of them."""
import subprocess

from harness import BUILD, expect, expect_verified

MIB = 1 << 20
FAIRGVCTL = BUILD / "tools/fairgvctl"
FREEZE = "tests/local/freeze"
SIZES = (24 * MIB, 3 * MIB, 1000, 100)
MOVABLE = "movable = true; memory = \"512M\";"


def ctl(daemon, *arguments, fails=False):
    done = subprocess.run([FAIRGVCTL, "--socket", f"{daemon.socket}.control", *map(str, arguments)],
                          capture_output=True, text=True, check=False)
    expect((done.returncode != 0) == fails, f"fairgvctl {arguments}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def session(daemon, vm="vm1"):
    (found,) = [each for each in daemon.report()["vms"] if each["name"] == vm]
    (only,) = found["sessions"]
    return only


def resident(daemon):
    return session(daemon)["gpus"][0]["resident_bytes"]


def counting(daemon, vm="vm1", sizes=SIZES):
    program = daemon.start(vm, FREEZE, *sizes, stdin=subprocess.PIPE)
    line = program.stdout.readline()
    expect(line == "ready\n", f"the program does not count: {line!r}")
    return program


def ask(program, rounds):
    program.stdin.write(f"{rounds}\n")
    program.stdin.flush()


def end(program, what):
    program.stdin.close()
    program.stdin = None
    expect_verified(program, what)
