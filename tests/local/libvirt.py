"""The hook for libvirt: a domain's VM is there before its QEMU, and goes with it."""
import os
import pathlib
import subprocess

from harness import BUILD, PATIENCE_S, backend, expect, expect_verified, main

HOOK = pathlib.Path(os.environ.get("top_srcdir", "."), "packaging/libvirt-hook")
VECADD = "workloads/vecadd"


def hook(daemon, domain, *operation):
    return subprocess.run(
        ["sh", HOOK, domain, *operation], stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=PATIENCE_S, check=False,
        env={**os.environ, "FAIRGV_DOMAINS": f"{daemon.folder}/domains",
             "FAIRGV_DOMAINS_LIST": f"{daemon.folder}/domains.conf",
             "FAIRGV_DOMAINS_SOCKETS": str(daemon.folder),
             "FAIRGV_DOMAINS_CTL": f"{BUILD}/tools/fairgvctl --socket {daemon.control}"})


def names(daemon):
    return [vm["name"] for vm in daemon.report()["vms"]]


def prepared(daemon):
    """A daemon's configuration that includes the list of domains, and what two of these get."""
    (daemon.folder / "domains").mkdir()
    (daemon.folder / "domains.conf").touch()
    text = daemon.config.read_text()
    daemon.config.write_text(text.replace(" );", '\n@include "domains.conf"\n );'))
    (daemon.folder / "domains/one.conf").write_text('weight = 3; # more\nmemory = "1G";\n')
    (daemon.folder / "domains/two.conf").write_text("windows = 2;\n")


def start_and_end():
    with backend({"local": ""}) as daemon:
        prepared(daemon)
        for domain in "one", "two":
            done = hook(daemon, domain, "prepare", "begin", "-")
            expect(done.returncode == 0 and not done.stderr, f"{domain}: {done}")
        expect(names(daemon) == ["local", "one", "two"], names(daemon))
        expect(daemon.report()["vms"][1]["weight"] == 3, "its weight")
        expect((daemon.folder / "one.sock").is_socket(), "QEMU's socket")
        # Whatever else libvirt tells, and domains that nothing is said about.
        for arguments in (("one", "start", "begin", "-"), ("one", "started", "begin", "-"),
                          ("one", "stopped", "end", "-"), ("other", "prepare", "begin", "-"),
                          ("other", "release", "end", "-"), ("an odd/name", "prepare", "begin", "-")):
            done = hook(daemon, *arguments)
            expect(done.returncode == 0 and names(daemon) == ["local", "one", "two"], f"{done}")
        expect_verified(daemon.start("local", VECADD), "a program meanwhile")
        hook(daemon, "one", "release", "end", "-")
        expect(names(daemon) == ["local", "two"], names(daemon))
        hook(daemon, "two", "release", "end", "-")
        expect(names(daemon) == ["local"] and not (daemon.folder / "domains.conf").read_text(), "at the end")
        daemon.expect_at_rest()


def what_can_not_be():
    """The domain does not start, and libvirt's log says why; nothing is left of it."""
    with backend({"local": ""}) as daemon:
        prepared(daemon)
        (daemon.folder / "domains/bad.conf").write_text('memory = "800G";')
        hook(daemon, "one", "prepare", "begin", "-")
        done = hook(daemon, "bad", "prepare", "begin", "-")
        expect(done.returncode != 0 and "the VMs of GPU 0 are given" in done.stderr, f"{done}")
        expect(names(daemon) == ["local", "one"], names(daemon))
        done = hook(daemon, "two", "prepare", "begin", "-")
        expect(done.returncode == 0 and names(daemon) == ["local", "one", "two"], f"{done}")


main(start_and_end, what_can_not_be)
