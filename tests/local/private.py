"""fairgv-run with no daemon about: it starts one for the run and takes it down after."""
import os
import pathlib
import signal
import subprocess
import tempfile
import time

from harness import BUILD, RUN, PATIENCE_S, expect, main, wait_until


def environment(folder):
    return {**os.environ, "XDG_RUNTIME_DIR": folder}


def descendants(pid):
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            child = int(path.parent.name)
            found += [child, *descendants(child)]
    return found


def leaves_nothing():
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([RUN, "--private", BUILD / "workloads/vecadd"], env=environment(folder),
                             capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        expect(run.returncode == 0 and "verified=yes" in run.stdout, run.stdout + run.stderr)
        expect(not os.listdir(folder), f"left behind: {os.listdir(folder)}")


def passes_the_status_on():
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([RUN, "--private", "--", "sh", "-c", "exit 7"], env=environment(folder),
                             timeout=PATIENCE_S, check=False)
        expect(run.returncode == 7, f"status {run.returncode}")


def killed_takes_the_daemon_along():
    with tempfile.TemporaryDirectory() as folder:
        with subprocess.Popen([RUN, "--private", BUILD / "workloads/matmul", "--iterations", "1000000"],
                              env=environment(folder), stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as run:
            wait_until(lambda: len(descendants(run.pid)) >= 3, "program, daemon and vGPU process")
            time.sleep(0.2)
            family = descendants(run.pid)
            run.send_signal(signal.SIGKILL)
            run.wait()
        wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in family),
                   "the end of all that it started")


main(leaves_nothing, passes_the_status_on, killed_takes_the_daemon_along)
