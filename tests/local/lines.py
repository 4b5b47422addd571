"""What FairGV does otherwise than a user expects it says in one line of stderr."""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

from harness import BUILD, PATIENCE_S, RUN, backend, expect, finish, main, wait_until

TAKE = "tests/local/take"
# With it, programs use FairGV whichever runtime they have.
HAS_DRIVER = (BUILD / "frontend/.libs/libcuda.so.1").exists()
MATMUL = "workloads/matmul"
FOREVER = ("--iterations", 1000000)


def run(*arguments, env=None):
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run(
            [RUN, *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE_S,
            check=False, env={**os.environ, "XDG_RUNTIME_DIR": folder, **(env or {})})


def expect_lines(text, *parts):
    lines = [line for line in text.splitlines() if line.startswith("fairgv")]
    expect(len(lines) == len(parts) and all(part in line for part, line in zip(parts, lines)),
           f"{parts} expected: {text}")


def substitute_is_named():
    """Where there is no other, since a GPU would be used."""
    done = run("--private", BUILD / TAKE, 4096, env={"CUDA_VISIBLE_DEVICES": ""})
    expect(done.returncode == 0, done.stderr)
    if "using CUDA" in done.stderr:
        return
    expect_lines(done.stderr, "fairgv: warning: the host has no GPU: this program uses the ")
    done = run("--private", "--quiet", BUILD / TAKE, 4096)
    expect(done.returncode == 0 and not done.stderr, done.stderr)


def chosen_soft_gpu_is_not():
    with backend({"vm1": ""}) as daemon:
        status, _, err = finish(daemon.start("vm1", TAKE, 4096))
        expect(status == 0 and not err, err)


def static_runtime():
    done = run("--private", "--quiet", BUILD / "tests/local/take_static", 4096)
    if HAS_DRIVER:
        expect(done.returncode == 0 and "verified=yes" in done.stdout and not done.stderr, done)
        return
    expect_lines(done.stderr, "has NVIDIA's CUDA runtime linked in and won't use FairGV: build it "
                              "with nvcc -cudart shared")


def found_in_the_path_too():
    if HAS_DRIVER:
        return
    done = run("--private", "take_static", 4096,
               env={"PATH": f"{BUILD / 'tests/local'}:{os.environ['PATH']}"})
    expect_lines(done.stderr, "has NVIDIA's CUDA runtime linked in")


def rpath():
    """Only where another library is found by it."""
    with tempfile.TemporaryDirectory() as name:
        program = pathlib.Path(name) / "take_rpath"
        shutil.copy(BUILD / "tests/local/take_rpath", program)
        done = run("--private", "--quiet", program, 4096)
        expect(done.returncode == 0 and not done.stderr, done.stderr)
        if HAS_DRIVER:
            return
        other = pathlib.Path(name) / "other/libcudart.so.13"
        other.parent.mkdir()
        other.touch()
        done = run("--private", program, 4096)
        expect(f"loads {other} by an RPATH of its own" in done.stderr, done.stderr)


def no_cuda_at_all():
    done = run("--private", "sh", "-c", "exit 7")
    expect(done.returncode == 7, f"status {done.returncode}")
    expect_lines(done.stderr, "fairgv-run: warning: sh has not used FairGV")


def expect_reason(program, reason):
    status, out, err = finish(program)
    expect(status == 1, f"status {status}: {out}{err}")
    expect_lines(err, f"fairgv: error: the session is lost: {reason}; this program")


def at_work(daemon):
    victim = daemon.start("vm1", MATMUL, *FOREVER)
    wait_until(lambda: any(session["launches"] for session in daemon.report()["vms"][0]["sessions"]),
               "the session at work")
    return victim


def lost_sessions():
    with backend({"vm1": ""}) as daemon:
        victim = at_work(daemon)
        [vgpu] = daemon.children()
        os.kill(vgpu, signal.SIGKILL)
        expect_reason(victim, "its process on the host was killed by signal 9 (Killed)")
        victim = at_work(daemon)
        daemon.process.terminate()
        expect_reason(victim, "the host's daemon is ending")


main(substitute_is_named, chosen_soft_gpu_is_not, static_runtime, found_in_the_path_too, rpath,
     no_cuda_at_all, lost_sessions)
