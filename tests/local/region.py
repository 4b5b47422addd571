"""fairgv-region on the host, where it measures a local window: what it prints and refuses, and
what the daemon has counted of it.
"""
import json
import os
import signal
import subprocess

from harness import BUILD, backend, expect, finish, main, wait_until

TOOL = "tools/fairgv-region"
CALLS = 50


def figures(daemon):
    done = subprocess.run([BUILD / "tools/fairgvctl", "--socket", f"{daemon.socket}.control", "stat",
                           "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["vms"][0]


def run(daemon, *arguments):
    return finish(daemon.start("vm", TOOL, *arguments))


def window_is_measured():
    """Each of 2 * CALLS calls rings for a host that sleeps, or is about to and sees it in time.
    The lane rings once more, when it is attached.
    """
    with backend({"vm": ""}) as daemon:
        status, out, err = run(daemon, "--json", "--calls", CALLS)
        expect(status == 0, f"status {status}: {err}")
        report = json.loads(out)
        expect(report["vm"] == "vm" and report["device"] is None, f"a local window: {report}")
        for phase in ("awake", "host_asleep", "both_asleep"):
            expect(report["round_trip"][phase]["calls"] == CALLS, f"{phase}: {report}")
        daemon.expect_at_rest()
        counted = figures(daemon)
        expect(CALLS <= counted["doorbells_received"] <= counted["requests"] + 1,
               f"doorbells received: {counted}")
        expect(0 < counted["doorbells_rung"] <= counted["requests"], f"doorbells rung: {counted}")


def table_is_printed():
    with backend({"vm": ""}) as daemon:
        status, out, err = run(daemon, "--calls", 1)
        expect(status == 0, f"status {status}: {err}")
        for line in ("VM vm, a window of ", "round trip, both awake ", "window, writing "):
            expect(line in out, f"{line!r} is not in {out}")
        expect("mapping" not in out, f"a local window's mapping is not judged: {out}")


def lost_session_is_told():
    """While it waits for the host to go to sleep, which that does late."""
    os.environ["FAIRGV_SPIN_US"] = "100000"
    with backend({"vm": ""}) as daemon:
        del os.environ["FAIRGV_SPIN_US"]
        process = daemon.start("vm", TOOL, "--calls", 200)
        wait_until(lambda: figures(daemon)["doorbells_received"] > 1, "a host that slept")
        [session] = figures(daemon)["sessions"]
        os.kill(session["vgpu_pid"], signal.SIGKILL)
        status, out, err = finish(process)
        expect(status == 1 and not out and "the session is lost" in err, f"{status}: {out}{err}")


def mistakes_are_told():
    """Each with one line."""
    for arguments, status, why in (
            (["--calls", "0"], 2, "--calls 0: not a number from 1 to 10000000"),
            (["--calls", "9x"], 2, "--calls 9x: not a number"),
            (["--calls", "10000001"], 2, "--calls 10000001: not a number"),
            (["word"], 2, "word: no such argument; see --help"),
            ([], 1, "no GPU for this program: no backend at /nowhere"),
    ):
        done = subprocess.run([BUILD / TOOL, *arguments], capture_output=True, text=True, check=False,
                              env={"FAIRGV_SOCKET": "/nowhere"})
        expect(done.returncode == status, f"{arguments}: status {done.returncode}")
        expect(done.stderr.count("\n") == 1 and f"fairgv-region: error: {why}" in done.stderr,
               f"{arguments}: {done.stderr}")


main(window_is_measured, table_is_printed, lost_session_is_told, mistakes_are_told)
