"""A guest program, a vGPU process or the daemon dies, and nobody else loses anything."""
import os
import random
import resource
import signal
import time

from harness import backend, expect, expect_verified, finish, kill, main, wait_until

VMS = {"victim": "weight = 1;", "other": "weight = 1;"}
MATMUL = "workloads/matmul"
FOREVER = ("--iterations", 1000000)
SOME = ("--iterations", 3)


def guest_killed_anywhere():
    """Killed at random moments from before the connection to the middle of a kernel."""
    dice = random.Random(7)
    with backend(VMS) as daemon:
        other = daemon.start("other", MATMUL, *SOME)
        for _ in range(25):
            victim = daemon.start("victim", MATMUL, *FOREVER)
            time.sleep(dice.choice((0, 0.01, 0.03, 0.06, 0.1, 0.3)) * dice.random() * 2)
            kill(victim)
        expect_verified(other, "the other VM's program")
        daemon.expect_at_rest()
        expect_verified(daemon.start("victim", MATMUL, *SOME), "the next program of the same VM")
        daemon.expect_at_rest()


def vgpu_killed():
    """Its program gets an error and ends; the other's result is right."""
    with backend(VMS) as daemon:
        victim = daemon.start("victim", MATMUL, *FOREVER)
        wait_until(daemon.children, "the victim's vGPU process")
        [vgpu] = daemon.children()
        wait_until(lambda: "victim" in daemon.log() or victim.poll() is None, "the session")
        other = daemon.start("other", MATMUL, *SOME)
        time.sleep(0.3)
        os.kill(vgpu, signal.SIGKILL)
        status, out, err = finish(victim)
        expect(status == 1, f"the victim's status: {status}: {out}{err}")
        expect("verified=yes" not in out, "the victim claims to have verified its result")
        expect_verified(other, "the other VM's program")
        daemon.expect_at_rest()


def daemon_killed():
    """Without its daemon a program ends with an error, and no vGPU process stays."""
    with backend(VMS) as daemon:
        victim = daemon.start("victim", MATMUL, *FOREVER)
        wait_until(daemon.children, "the victim's vGPU process")
        [vgpu] = daemon.children()
        time.sleep(0.2)
        daemon.process.kill()
        daemon.process.wait()
        status, _, err = finish(victim)
        expect(status == 1, f"the victim's status: {status}: {err}")
        wait_until(lambda: not os.path.exists(f"/proc/{vgpu}"), "the vGPU process's end")
        daemon.process.returncode = 0    # killed on purpose
        daemon.socket.unlink()


def daemon_ended():
    """A daemon that is told to end takes its sessions with it."""
    with backend(VMS) as daemon:
        victim = daemon.start("victim", MATMUL, *FOREVER)
        wait_until(daemon.children, "the victim's vGPU process")
        [vgpu] = daemon.children()
        daemon.process.terminate()
        status, _, err = finish(victim)
        expect(status == 1, f"the victim's status: {status}: {err}")
        wait_until(lambda: not os.path.exists(f"/proc/{vgpu}"), "the vGPU process's end")


def nothing_can_be_written():
    """A daemon whose files may not grow, as on a full disk, refuses programs and serves the others."""
    with backend(VMS) as daemon:
        pid = daemon.process.pid
        other = daemon.start("other", MATMUL, *FOREVER)
        wait_until(lambda: "served by process" in daemon.log(), "the session")
        soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))
        status, out, err = finish(daemon.start("victim", MATMUL, *SOME))
        expect(status == 1 and "File too large" in err, f"status {status}: {out}{err}")
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))
        expect_verified(daemon.start("victim", MATMUL, *SOME), "a program after that")
        expect(other.poll() is None, "the other VM's program has ended")
        kill(other)
        daemon.expect_at_rest()


main(guest_killed_anywhere, vgpu_killed, daemon_killed, daemon_ended, nothing_can_be_written)
