"""fairgvctl doctor: on systems of the test's own, in folders, each with one thing wrong, it names that,
says what to do, and nothing else is wrong."""
import os
import pathlib
import subprocess
import tempfile

from harness import BUILD, PATIENCE_S, backend, expect, main

CTL = BUILD / "tools/fairgvctl"
FILES = {"proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module 580.1\n",
         "proc/sys/kernel/osrelease": "6.8.0-1\n",
         "sys/kernel/security/lsm": "lockdown,capability,landlock,yama\n",
         "sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids\n",
         "sys/module/nvidia_uvm/parameters/uvm_disable_hmm": "Y\n",
         "dev/nvidia0": "", "dev/nvidiactl": ""}
# A group without members, which a user other than root has to have; 0 is no group of devices' own.
GROUP = 54321 if os.geteuid() == 0 else None


def write(root, name, text):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def healthy(root, daemon):
    for name, text in FILES.items():
        write(root, name, text)
    for name in ("dev/nvidia0", "dev/nvidiactl"):
        (root / name).chmod(0o660)
        if GROUP:
            os.chown(root / name, 0, GROUP)
    (root / "run").mkdir()
    (root / "closed").mkdir(mode=0o700)
    write(root, "conf", f'gpu = "cuda"; socket = "/run/socket"; control = "{daemon.socket}.control";\n'
                        'vms = ( { name = "vm1"; socket = "/closed/socket"; } );\n')


def doctor(root):
    return subprocess.run([CTL, "--config", root / "conf", "--root", root, "doctor"], text=True,
                          capture_output=True, timeout=PATIENCE_S, check=False)


def edit_config(root, old, new):
    text = (root / "conf").read_text()
    expect(old in text, text)
    (root / "conf").write_text(text.replace(old, new))


# What goes wrong: how, which verdict, on what, and what the line has besides.
ILLS = (
    (lambda root: (root / "dev/nvidia0").chmod(0o666), "wrong", "devices", "/dev/nvidia0 is open to all"),
    (lambda root: (root / "run").chmod(0o700), "wrong", "socket", "chmod o+x"),
    (lambda root: (root / "run").rmdir(), "wrong", "socket", "No such file"),
    (lambda root: (root / "closed").chmod(0o755), "wrong", "socket", "VM vm1"),
    (lambda root: edit_config(root, ".control", ".nobody"), "wrong", "daemon", "systemctl start fairgv"),
    (lambda root: edit_config(root, "vms", "hold = 3; vms"), "wrong", "configuration", "conf:2: hold"),
    (lambda root: write(root, "tmp/nvidia-mps/control", ""), "wrong", "MPS", "quit"),
    (lambda root: (root / "proc/driver/nvidia/version").unlink(), "wrong", "driver", "modprobe nvidia"),
    (lambda root: write(root, "proc/sys/kernel/osrelease", "6.1.0-30-amd64\n"), "hint", "kernel", "6.5"),
    (lambda root: write(root, "sys/kernel/security/lsm", "yama\n"), "hint", "Landlock", "lsm=landlock,yama"),
    (lambda root: (root / "sys/fs/cgroup/cgroup.controllers").unlink(), "hint", "groups", "version 2"),
    (lambda root: write(root, "sys/module/nvidia_uvm/parameters/uvm_disable_hmm", "N\n"), "hint", "HMM",
     "uvm_disable_hmm=1"),
    (lambda root: edit_config(root, "vms", 'hold = "off"; vms'), "hint", "holding", "auto"),
)
if GROUP:
    ILLS += ((lambda root: os.chown(root / "dev/nvidiactl", 0, 0), "wrong", "devices", "fairgv-gpu"),)


def each_ill_is_named():
    with backend({"vm1": ""}) as daemon:
        for spoil, verdict, subject, text in ILLS:
            with tempfile.TemporaryDirectory() as folder:
                root = pathlib.Path(folder)
                healthy(root, daemon)
                done = doctor(root)
                bad = [line for line in done.stdout.splitlines() if not line.startswith("fine")]
                # Only root can give the devices a group that nobody is in.
                expect(GROUP is None or (done.returncode == 0 and not bad), done)
                spoil(root)
                done = doctor(root)
                found = [line for line in done.stdout.splitlines() if line not in bad
                         and line.split()[:2] == [verdict, subject] and text in line]
                expect(len(found) == 1, f"{verdict} {subject} {text}: {done}")
                rest = [line for line in done.stdout.splitlines()
                        if not line.startswith("fine") and line not in bad + found]
                expect(not rest, f"{subject}: also {rest}")
                expect(not GROUP or done.returncode == (verdict == "wrong"), done)


main(each_ill_is_named)
