"""What `make install` leaves: everything that a system needs, with its own paths, and a service that
starts, tells so, serves a program and ends. The system sees it at its place, in a mount namespace.
"""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile

from harness import BUILD, PATIENCE_S, expect, main

SOURCE = pathlib.Path(os.environ["top_srcdir"]).resolve()
PROGRAMS = ("bin/fairgv-run", "bin/fairgv-vm", "bin/fairgv-region", "bin/fairgv-sim", "bin/fairgvctl",
            "sbin/fairgv-backend", "sbin/fairgv-metrics")
LIBRARIES = ("libfairgv.so.0", "libcudart.so.13", "libcudart.so.12", "libnvidia-ml.so.1")
INSIDE = "--inside"


def variables():
    """The folders of this build, from its Makefile."""
    text = (BUILD / "Makefile").read_text()
    found = dict(re.findall(r"^(\w+) = (.*)$", text, re.M))

    def expand(value):
        while "$" in value:
            value = re.sub(r"\$[{(](\w+)[})]", lambda name: found[name[1]], value)
        return pathlib.Path(value)
    names = ("prefix", "bindir", "sbindir", "pkglibdir", "pkglibexecdir", "sysconfdir", "runstatedir",
             "docdir", "mandir", "systemunitdir", "sysusersdir", "tmpfilesdir", "udevrulesdir",
             "bashcompdir", "zshcompdir", "dkmsdir")
    return {name: expand(found[name]) for name in names}


DIRS = variables()
UNIT = DIRS["systemunitdir"] / "fairgv.service"
METRICS_UNIT = DIRS["systemunitdir"] / "fairgv-metrics.service"
CONFIG = DIRS["sysconfdir"] / "fairgv/backend.conf"


def make(goal, *variables_of_make):
    env = {key: value for key, value in os.environ.items()
           if key not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    done = subprocess.run(["make", "-C", BUILD, goal, *variables_of_make], env=env, text=True,
                          capture_output=True, check=False)
    expect(done.returncode == 0, f"make {goal}: {done.stdout[-2000:]}{done.stderr[-2000:]}")


def files_of(root):
    return sorted(path for path in pathlib.Path(root).rglob("*") if not path.is_dir())


def at(root, path):
    return pathlib.Path(f"{root}{path}")


def everything_is_there(root):
    wanted = [DIRS["prefix"] / program for program in PROGRAMS]
    wanted += [DIRS["pkglibdir"] / library for library in LIBRARIES]
    wanted += [DIRS["pkglibexecdir"] / "fairgv-vgpu", CONFIG, UNIT, METRICS_UNIT,
               DIRS["sysusersdir"] / "fairgv.conf", DIRS["tmpfilesdir"] / "fairgv.conf",
               DIRS["udevrulesdir"] / "60-fairgv.rules", DIRS["zshcompdir"] / "_fairgv",
               DIRS["dkmsdir"] / "dkms.conf", DIRS["docdir"] / "docs/support.md"]
    wanted += [DIRS["mandir"] / f"man{page.suffix[1:]}/{page.name}"
               for page in (SOURCE / "man").glob("*.[158]")]
    wanted += [DIRS["docdir"] / page.relative_to(SOURCE) for page in (SOURCE / "docs").rglob("*.md")]
    missing = [str(path) for path in wanted if not at(root, path).exists()]
    expect(not missing, f"not installed: {missing}")
    unwanted = [str(path) for path in files_of(root) if path.suffix in (".la", ".a", ".in")]
    expect(not unwanted, f"installed: {unwanted}")


def texts_have_real_paths(root):
    for page in at(root, DIRS["mandir"]).rglob("*.[158]"):
        text = page.read_text()
        expect(not re.search(r"RUNSTATEDIR|SYSCONFDIR|@\w+@", text), f"{page} has a placeholder")
        for folder, standard in (("runstatedir", "/run"), ("sysconfdir", "/etc")):
            ours = f"{DIRS[folder]}/fairgv/"
            others = re.findall(rf"[\w/]*{standard}/fairgv/", text)
            expect(all(other == ours for other in others), f"{page}: {others}, not {ours}")
    for name in (UNIT, METRICS_UNIT, DIRS["tmpfilesdir"] / "fairgv.conf"):
        expect(not re.search(r"@\w+@", at(root, name).read_text()), f"{name} has a placeholder")


def debian_lists():
    """{package: paths}."""
    return {path.stem: [line.split()[0] for line in path.read_text().splitlines()]
            for path in (SOURCE / "packaging/debian").glob("*.install")}


def rpm_lists():
    """The same from the sections of the RPM specification, whose man pages may be compressed."""
    text = (SOURCE / "packaging/rpm/fairgv.spec").read_text()
    version = re.search(r"^Version: +(\S+)", text, re.M)[1]
    in_configure = re.search(r"^AC_INIT\(\[fairgv\], \[(.*)\]\)", (SOURCE / "configure.ac").read_text(), re.M)[1]
    expect(version == in_configure, f"the specification is of version {version}, not {in_configure}")
    text = text.replace("%{_mandir}", "/usr/share/man").replace("%{version}", version)
    return {f"fairgv-{package}": [line.split()[-1].lstrip("/").rstrip("*") for line in files.splitlines()
                                  if not line.startswith(("%dir", "%license"))]
            for package, files in re.findall(r"^%files (\w+)\n((?:.+\n?)*)", text, re.M)}


def packages_have_everything(root):
    """The lists name paths below /usr; a file in none or in two of them is a mistake."""
    # debhelper installs these itself, from where packaging/debian/rules puts them.
    apart = {str(UNIT), str(METRICS_UNIT), str(DIRS["udevrulesdir"] / "60-fairgv.rules")}
    for lists, left_out in ((debian_lists(), apart), (rpm_lists(), set())):
        expect(len(lists) == 4, f"packages: {list(lists)}")
        for path in files_of(root):
            name = "/" + str(path.relative_to(root))
            if name not in left_out:
                expect_one_owner(lists, name)


def expect_one_owner(lists, name):
    standard = {"sysconfdir": "etc", "docdir": "usr/share/doc/fairgv-doc",
                "pkglibdir": "usr/lib/fairgv", "prefix": "usr"}
    folder = next(key for key in standard if name.startswith(f"{DIRS[key]}/"))
    there = standard[folder] + name[len(str(DIRS[folder])):]
    owners = [package for package, entries in lists.items()
              if any(there == entry or there.startswith(f"{entry.rstrip('/')}/") or
                     (there.startswith(entry) and "/man/" in entry) for entry in entries)]
    expect(len(owners) == 1, f"{there} is in the packages {owners}")


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def binaries_know_no_build_path(root):
    """But for what debuggers read."""
    allowed = {"$ORIGIN", str(DIRS["pkglibdir"])}
    for path in files_of(root):
        if path.is_symlink() or not is_elf(path):
            continue
        dynamic = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True, check=True)
        for search in re.findall(r"R(?:UN)?PATH\).*\[(.*)\]", dynamic.stdout):
            expect(set(search.split(":")) <= allowed, f"{path} looks for libraries in {search}")
        with tempfile.NamedTemporaryFile() as bare:
            subprocess.run(["objcopy", "--strip-debug", path, bare.name], check=True)
            content = pathlib.Path(bare.name).read_bytes()
        for folder in (SOURCE, BUILD.resolve()):
            expect(str(folder).encode() not in content, f"{path} has the path {folder}")


def options_of(program):
    text = subprocess.run([BUILD / program, "--help"], capture_output=True, text=True,
                          check=True).stdout
    return set(re.findall(r"--[a-z-]+", text))


def tool(name):
    """Where it was built."""
    return next(path for path in (f"tools/{name}", f"backend/{name}") if (BUILD / path).exists())


def complete(script, *words):
    """What bash offers for the last of @words."""
    names = " ".join(f"'{word}'" for word in words)
    text = f"""source {script}
COMP_WORDS=({names}); COMP_CWORD={len(words) - 1}
_fairgv {words[0]}
printf '%s\\n' "${{COMPREPLY[@]}}" """
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=True)
    expect(not done.stderr, done.stderr)
    return set(done.stdout.split())


def shells_know_the_options(root):
    zsh = at(root, DIRS["zshcompdir"] / "_fairgv").read_text()
    for program in PROGRAMS:
        name = program.split("/")[1]
        options = options_of(tool(name))
        offered = complete(at(root, DIRS["bashcompdir"] / name), name, "--")
        expect(offered == options, f"bash offers {offered} for {name}, which has {options}")
        of_zsh = set(re.findall(r"'(--[a-z-]+)\[", zsh.split(f"\n{name})\n")[1].split(";;")[0]))
        expect(of_zsh | {"--version", "--help"} == options, f"zsh offers {of_zsh} for {name}")
    script = at(root, DIRS["bashcompdir"] / "fairgvctl")
    expect(complete(script, "fairgvctl", "--json", "") == {"list", "stat", "set", "end", "freeze", "thaw", "reload", "top", "metrics", "doctor", "cdi"},
           "commands")
    expect(complete(script, "fairgvctl", "--config", "x", "s") == {"stat", "set"}, "of an option")
    expect("/bin" in complete(script, "fairgv-run", "--", "ls", "/bi"), "files of the program")


def nothing_stays(root):
    make("uninstall", f"DESTDIR={root}")
    expect(not files_of(root), f"make uninstall leaves {files_of(root)}")


def configuration_is_kept(root):
    """A configuration that was changed is neither replaced nor removed."""
    config = at(root, CONFIG)
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text("# ours\n")
    make("install", f"DESTDIR={root}")
    make("uninstall", f"DESTDIR={root}")
    expect(config.read_text() == "# ours\n", config.read_text())


# --- At its place -------------------------------------------------------------------------------

def run(*command, **options):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False,
                          timeout=PATIENCE_S, **options)


def examples_are_right():
    """The configuration as it is installed, and with all that it only mentions."""
    text = CONFIG.read_text()
    user = f'"{os.getuid()}"'
    all_of_it = re.sub(r"^\t# (?=, \{|    ivshmem)", "\t", text, flags=re.M)
    all_of_it, keys = re.subn(r"^# (?=observe|metrics)", "", all_of_it, flags=re.M)
    expect(keys == 3, "the examples of keys are not found")
    expect(all_of_it.count("\n\t, {") == 3, "the examples of VMs are not found")
    for name, changed in (("as installed", text), ("with its examples", all_of_it)):
        changed = re.sub(r'"(root|alice|libvirt-qemu|fairgv-metrics)"', user, changed)
        CONFIG.write_text(changed)
        done = run(DIRS["sbindir"] / "fairgv-backend", "--check")
        expect(done.returncode == 0 and done.stdout.startswith("OK"), f"{name}: {done}")


def unit_is_right(unit):
    text = unit.read_text()
    command = re.search(r"^ExecStart=(.*)$", text, re.M)[1].split()
    expect(os.access(command[0], os.X_OK), f"{command[0]} cannot be executed")
    try:
        done = run("systemd-analyze", "verify", "--man=no", unit)
    except FileNotFoundError:
        print("left out, as there is no systemd-analyze: its own look at the unit")
        return command
    said = [line for line in done.stderr.splitlines() if "fairgv" in line]
    expect(not said, f"systemd says of the unit: {said}")
    return command


def await_notice(notices, wanted):
    """What the daemon tells systemd, up to @wanted."""
    told = ""
    while wanted not in told.split("\n"):
        told += notices.recv(4096).decode() + "\n"
    return told


def service_serves():
    command = unit_is_right(UNIT)
    CONFIG.write_text(f'gpu = "soft"; vms = ( {{ name = "local"; users = ["{os.getuid()}"]; }} );')
    with tempfile.TemporaryDirectory() as folder, \
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices:
        notices.bind(f"{folder}/notify")
        notices.settimeout(PATIENCE_S)
        env = {**os.environ, "NOTIFY_SOCKET": f"{folder}/notify"}
        with open(f"{folder}/log", "w+", encoding="utf-8") as log, \
                subprocess.Popen(command, env=env, stderr=log) as daemon:
            told = await_notice(notices, "READY=1")
            expect("STATUS=VMs: 1; on soft GPU 0" in told, told)
            program = (DIRS["bindir"] / "fairgv-run", "--quiet", "--vm", "local",
                       BUILD / "workloads/vecadd")
            done = run(*program)
            expect(done.returncode == 0 and "verified=yes" in done.stdout, done)
            report = json.loads(run(DIRS["bindir"] / "fairgvctl", "list", "--json").stdout)
            expect([vm["name"] for vm in report["vms"]] == ["local"], report)
            # A daemon that one of its programs starts for itself tells systemd nothing.
            done = run(program[0], "--private", program[-1], env=env)
            expect(done.returncode == 0 and "verified=yes" in done.stdout, done)
            daemon.send_signal(signal.SIGTERM)
            told = await_notice(notices, "STOPPING=1")
            expect("READY=1" not in told and told.count("STOPPING=1") == 1, told)
            status = daemon.wait(PATIENCE_S)
            log.seek(0)
            expect(status == 0, log.read())


def metrics_are_served():
    command = unit_is_right(METRICS_UNIT)
    CONFIG.write_text(f"""gpu = "soft"; observe = "{DIRS["runstatedir"]}/fairgv/observe.sock";
                      vms = ( {{ name = "local"; users = ["{os.getuid()}"]; }} );""")
    with tempfile.TemporaryDirectory() as folder, \
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices:
        notices.bind(f"{folder}/notify")
        notices.settimeout(PATIENCE_S)
        env = {**os.environ, "NOTIFY_SOCKET": f"{folder}/notify"}
        with subprocess.Popen([DIRS["sbindir"] / "fairgv-backend"], env=env) as daemon:
            await_notice(notices, "READY=1")
            with subprocess.Popen(command, env=env) as metrics:
                await_notice(notices, "READY=1")
                with socket.socket(socket.AF_UNIX) as client:
                    client.settimeout(PATIENCE_S)
                    client.connect(f"{DIRS['runstatedir']}/fairgv-metrics/metrics.sock")
                    client.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    with client.makefile() as reply:
                        text = reply.read()
                expect("200 OK" in text and 'fairgv_vm_weight{vm="local",gpu="0"} 1' in text, text)
                metrics.terminate()
                expect(metrics.wait(PATIENCE_S) == 0, metrics)
            daemon.terminate()
            expect(daemon.wait(PATIENCE_S) == 0, daemon)


def expect_cdi(spec):
    """What the specification of the Container Device Interface wants, as far as it is used."""
    def edits_of(owner):
        edits = owner["containerEdits"]
        expect(set(edits) == {"env", "mounts"}, edits)
        expect(all(re.fullmatch(r"\w+=.+", entry) for entry in edits["env"]), edits)
        for mount in edits["mounts"]:
            expect(set(mount) == {"hostPath", "containerPath", "options"}, mount)
            expect(all(mount[key].startswith("/") for key in ("hostPath", "containerPath")), mount)
        return edits
    expect(set(spec) == {"cdiVersion", "kind", "devices", "containerEdits"}, spec)
    expect(re.fullmatch(r"[a-z0-9.-]+/[a-z0-9_.-]+", spec["kind"]), spec["kind"])
    names = [device["name"] for device in spec["devices"]]
    expect(len(set(names)) == len(names), names)
    return edits_of(spec), {device["name"]: edits_of(device) for device in spec["devices"]}


def run_in_container(edits, *command):
    """Without what is installed, and with the edits of a specification alone."""
    mounts = [mount for edit in edits for mount in edit["mounts"]]
    env = [entry for edit in edits for entry in edit["env"]]
    with tempfile.TemporaryDirectory() as stash:
        script = ["set -e"]
        for index, mount in enumerate(mounts):
            make_it = "mkdir -p" if os.path.isdir(mount["hostPath"]) else "touch"
            script.append(f"{make_it} {stash}/{index}; mount --bind {mount['hostPath']} {stash}/{index}")
        script += [f"mount -t tmpfs hidden {DIRS[name]}" for name in ("prefix", "runstatedir")]
        for index, mount in enumerate(mounts):
            path = mount["containerPath"]
            make_it = "mkdir -p" if os.path.isdir(mount["hostPath"]) else "touch"
            script.append(f"mkdir -p {os.path.dirname(path)}; {make_it} {path}")
            script.append(f"mount --bind {stash}/{index} {path}")
        script.append('exec "$@"')
        return run("unshare", "-m", "-p", "-f", "sh", "-c", "\n".join(script), "sh", "env", "-i", *env,
                   *command)


def containers_get_their_vm():
    folder = DIRS["runstatedir"] / "fairgv"
    CONFIG.write_text(f'''gpu = "soft"; vms = ( {{ name = "none"; }},
        {{ name = "box"; socket = "{folder}/box/backend.sock"; }} );''')
    ready, told = os.pipe()
    with tempfile.TemporaryFile("w+") as log, subprocess.Popen(
            [DIRS["sbindir"] / "fairgv-backend", "--ready-fd", str(told)], stderr=log,
            pass_fds=(told,)) as daemon:
        os.close(told)
        with os.fdopen(ready) as line:
            expect(line.read(), "the daemon does not start")
        common, devices = expect_cdi(json.loads(run(DIRS["bindir"] / "fairgvctl", "cdi").stdout))
        expect(set(devices) == {"box"}, devices)
        program = BUILD / "workloads/vecadd"
        done = run_in_container([common, devices["box"]], program)
        expect(done.returncode == 0 and "verified=yes" in done.stdout, done)
        done = run_in_container([common], program)
        expect(done.returncode != 0 and "verified=yes" not in done.stdout, done)
        daemon.send_signal(signal.SIGTERM)
        daemon.wait(PATIENCE_S)
        log.seek(0)
        expect('vm box, program "vecadd"' in log.read(), "the session is not in its VM")
    CONFIG.write_text('vms = ( { name = "none"; } );')
    done = run(DIRS["bindir"] / "fairgvctl", "cdi")
    expect(done.returncode == 1 and "no VM has a socket" in done.stderr and not done.stdout, done)


def inside():
    """In a namespace of its own, where the folder is at its place and no daemon of the system is
    seen."""
    root = sys.argv[2]
    for command in (["mount", "--bind", at(root, DIRS["prefix"]), DIRS["prefix"]],
                    ["mount", "-t", "tmpfs", "fairgv", DIRS["runstatedir"]]):
        subprocess.run(command, check=True)
    before = CONFIG.read_text()
    main(examples_are_right, service_serves, metrics_are_served, containers_get_their_vm)
    CONFIG.write_text(before)


def works_at_its_place(root):
    if DIRS["prefix"] == pathlib.Path("/usr") or DIRS["prefix"] not in DIRS["sysconfdir"].parents:
        print(f"left out: {DIRS['prefix']} has other things that this test needs")
        return
    made = not DIRS["prefix"].exists()
    DIRS["prefix"].mkdir(parents=True, exist_ok=True)
    spaces = ["-m"] if os.geteuid() == 0 else ["-m", "-U", "--map-current-user", "--keep-caps"]
    if run("unshare", *spaces, "true").returncode:
        print("left out, as the kernel lets nobody make namespaces: running it at its place")
        return
    done = run("unshare", *spaces, sys.executable, __file__, INSIDE, root)
    if made:
        DIRS["prefix"].rmdir()
    sys.stdout.write(done.stdout)
    expect(done.returncode == 0, done.stderr)


def tarball_has_everything():
    """What git knows, but for what is git's own."""
    listed = run("git", "-C", SOURCE, "ls-files") if (SOURCE / ".git").exists() else None
    if not listed or listed.returncode:
        print("left out, as this is no checkout: what belongs into a tarball")
        return
    with tempfile.TemporaryDirectory(prefix="fairgv-dist-") as folder:
        make("distdir", f"distdir={folder}/fairgv")
        missing = [name for name in listed.stdout.splitlines()
                   if not os.path.lexists(f"{folder}/fairgv/{name}")
                   and not name.startswith((".ci/", ".gitignore"))]
        subprocess.run(["chmod", "-R", "u+w", folder], check=True)
    expect(not missing, f"not in the tarball (EXTRA_DIST): {missing}")


def installed():
    with tempfile.TemporaryDirectory(prefix="fairgv-install-") as root:
        make("install", f"DESTDIR={root}")
        for test in (everything_is_there, texts_have_real_paths, binaries_know_no_build_path,
                     shells_know_the_options, packages_have_everything, works_at_its_place,
                     nothing_stays, configuration_is_kept):
            test(root)


if __name__ == "__main__":
    if sys.argv[1:2] == [INSIDE]:
        inside()
    else:
        main(installed, tarball_has_everything)
