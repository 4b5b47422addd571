"""The pages say what is so: each command of README.md, docs/vm.md, docs/guest.md and docs/host.md is taken
from the page and run, with what `make install` leaves at its place, on a soft GPU; what cannot be run here
(rules.py says why) and what all other pages name must at least exist.
"""
import fcntl
import functools
import os
import pathlib
import re
import socket
import struct
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "local"))
import install
import rules
from harness import Failure, expect
from markdown import codes, commands
from running import Host
from words import OURS, Words, Wrong, need

SOURCE, BUILD, DIRS = install.SOURCE, install.BUILD, install.DIRS
RUN_PAGES = ("README.md", "docs/vm.md", "docs/guest.md", "docs/host.md")
CONFIG = re.compile(r"^(gpu|vms|observe|window) = ")
TOOL = re.compile(rf"^(?:sudo )?(?:(?:{'|'.join(OURS)}|build/bench/bench|bench|systemctl|make|configure"
                  r"|\./configure|\./quickstart) )")


def rule_of(text):
    """How a command is tried: a word of rules.py, or itself with a change."""
    for pattern, how, _ in rules.RULES:
        if re.search(pattern, re.sub(r"\s+#.*", "", text)):
            return (how, text) if how in rules.WAYS else ("run", re.sub(pattern, lambda _: how, text))
    return "run", text


class Page:
    """@host runs commands; None: they are only looked at."""

    def __init__(self, text, words, host=None):
        self.text, self.words, self.host = text, words, host

    def check(self):
        for code in codes(self.text):
            try:
                self.code(code)
            except (Wrong, Failure) as wrong:
                raise Failure(f"line {code.line}: {code.text!r}: {wrong}") from None

    def code(self, code):
        if not code.is_block:
            self.span(code)
        elif any(code.text.startswith(start) for start, _ in rules.TEXTS):
            self.other(code, next(kind for start, kind in rules.TEXTS if code.text.startswith(start)))
        elif CONFIG.match(code.text):
            if self.host:
                self.host.configure(code.text)
        else:
            for command in commands(code):
                self.command(command.text)

    def command(self, text):
        parts = [text] if "<<" in text or "||" in text else re.split(r" && ", text)
        for part in parts:
            how, command = rule_of(part.strip())
            self.words.look(re.sub(r"<<\w+[\s\S]*", "", part))
            if self.host and how != rules.LOOK:
                self.host.do(how, command)

    # --- Spans, and blocks that are no commands -----------------------------------------------------

    def span(self, code):
        text = code.text
        for name, section in re.findall(r"\b(fairgv[\w.-]*)\((\d)\)", text):
            need((SOURCE / f"man/{name}.{section}").exists(), f"there is no manual page {name}({section})")
        for name in re.findall(r"\bFAIRGV_[A-Z_]+\b", text):
            need(name in variables(), f"nothing knows the variable {name}")
        if re.fullmatch(r"[\w./-]+\.(md|py|conf|rules|json|svg)", text):
            self.file(text)
        if TOOL.match(text) and "…" not in text:
            self.words.look(text)
            if self.host and any(re.search(pattern, text) for pattern in rules.RUN_SPANS):
                self.host.do(*rule_of(text))

    def file(self, name):
        places = (SOURCE, SOURCE / "docs", SOURCE / "docs/design", SOURCE / "packaging", SOURCE / "guest-kmod", BUILD)
        installed = (install.at(self.words.root, DIRS["sysconfdir"]), install.at(self.words.root, DIRS["prefix"]),
                     install.at(self.words.root, DIRS["docdir"]))
        if "/" in name and name.split("/")[0] in ("docs", "tests", "bench", "tools", "man", "packaging", "etc"):
            need(any((place / name).exists() for place in (*places, *installed, BUILD.parent))
                 or (BUILD / name.removeprefix("build/")).exists(), f"there is no {name}")
        elif name.endswith(".md"):
            need(any((place / name).exists() for place in places), f"there is no page {name}")

    def other(self, code, kind):
        if kind == rules.OUTPUT:
            program = (SOURCE / "tools/demo.in").read_text()
            need(code.text.split(":")[0] in program, "the demo prints something else")
        if not self.host:
            return
        said = [" ".join(text.split()) for text in self.host.said]
        if kind == rules.PRINTED:
            need(" ".join(code.text.split()) in said, f"what is printed is {said[-1:]}")
        elif kind == rules.MARKUP:
            need(any(code.text.strip() in text for text in said), "nothing has printed it")
        elif kind == rules.QMP:
            self.host.qmp(code.text)


@functools.cache
def variables():
    """Those that something reads."""
    done = subprocess.run(["grep", "-rhoE", "--exclude-dir=.git", "--exclude=*.md", "--exclude-dir=build*", "--exclude-dir=docs",
                           r"\bFAIRGV_[A-Z0-9_]+", SOURCE], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


# --- The test -----------------------------------------------------------------------------------

MISTAKES = (
    ("```\nfairgvctl lisst\n```", "fairgvctl has no lisst"),
    ("```\nfairgvctl stat --intervall 10\n```", "fairgvctl has no --intervall"),
    ("say `fairgvctl set vm1 wait=3`", "set knows no wait"),
    ("```\nfairgv-run --vm vm1 --strikt ./program --anything\n```", "fairgv-run has no --strikt"),
    ("see `fairgv-rum(1)`", "no manual page fairgv-rum(1)"),
    ("```\nfairgv-list\n```", "fairgv-list is no program"),
    ("read `docs/nothing.md`", "there is no docs/nothing.md"),
    ("```\n./quickstart demo --vms\n```", "quickstart has no demo --vms"),
    ("`build/bench/bench fairness --vm 1`", "bench fairness has no --vm"),
    ("```\nsystemctl start fairgv-metrik\n```", "there is no unit fairgv-metrik"),
    ("```\napt-get install ./fairgv-gest_*.deb\n```", "there is no package fairgv-gest"),
    ("```\napt-get install libjansson5\n```", "nothing of the guest's wants libjansson5"),
    ("```\n./configure --disable-hosts && make\n```", "configure has no --disable-hosts"),
    ("```\nmake instal\n```", "make has no goal instal"),
    ("```\ndkms install fairgv/0.0.1\n```", "dkms.conf has"),
    ("set `FAIRGV_NOTHING=1`", "nothing knows the variable FAIRGV_NOTHING"),
)


def mistakes_are_found(words):
    for text, wanted in MISTAKES:
        try:
            Page(text, words).check()
        except Failure as failure:
            expect(wanted in str(failure), f"{text}: {failure}")
        else:
            raise Failure(f"not found: {text}")


def all_pages():
    return ["README.md", "HACKING.md", "SECURITY.md",
            *(str(page.relative_to(SOURCE)) for page in sorted((SOURCE / "docs").glob("*.md")))]


def look_at_pages(words):
    for name in all_pages():
        page = Page((SOURCE / name).read_text(), words)
        try:
            if name in RUN_PAGES:
                page.check()
            else:
                for code in (code for code in codes(page.text) if not code.is_block):
                    page.span(code)
        except (Failure, Wrong) as wrong:
            raise Failure(f"{name}: {wrong}") from None
        print(f"{name}: what it names is there", flush=True)


def run_page(name, words):
    with tempfile.TemporaryDirectory(prefix="fairgv-page-") as folder:
        host = Host(folder)
        try:
            if name != "README.md":     # which begins before anything is installed
                host.begin()
            Page((SOURCE / name).read_text(), words, host).check()
        except Failure as failure:
            raise Failure(f"{name}: {failure}") from None
        finally:
            host.end()
    print(f"{name}: its commands were run", flush=True)


def lo_up():
    """The loopback interface of a new network namespace."""
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", 1))      # SIOCSIFFLAGS, IFF_UP


def inside(root):
    """In namespaces of its own, where what is installed lies over what was there, and nothing that is
    written stays."""
    lo_up()
    mounts = [["mount", "-t", "tmpfs", "fairgv", DIRS["runstatedir"]]]
    for folder, below in (("/etc", "/etc"), ("/var/lib", "/var/lib"),
                          (DIRS["prefix"], f"{install.at(root, DIRS['prefix'])}:{DIRS['prefix']}")):
        layer = f"{root}/layers{folder}"
        mounts += [["mkdir", "-p", f"{layer}/upper", f"{layer}/work"],
                   ["mount", "-t", "overlay", "fairgv", folder, "-o",
                    f"lowerdir={below},upperdir={layer}/upper,workdir={layer}/work"]]
    for command in mounts:
        subprocess.run(command, check=True)
    for name in RUN_PAGES:
        run_page(name, Words(SOURCE, BUILD, "", DIRS))


def run_pages(root):
    if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "-n", "-p", "-f", "true"], check=False).returncode:
        print("left out, as only root may have a host of its own: running the commands")
        return
    if DIRS["prefix"] == pathlib.Path("/usr") or DIRS["prefix"] not in DIRS["sysconfdir"].parents:
        print(f"left out: {DIRS['prefix']} has other things that commands need")
        return
    subprocess.run(["mkdir", "-p", DIRS["prefix"]], check=True)
    done = subprocess.run(["unshare", "-m", "-n", "-p", "-f", "--kill-child", "--mount-proc", sys.executable,
                           __file__, "--inside", root], check=False)
    expect(done.returncode == 0, "a command of a page")


def main():
    if sys.argv[1:2] == ["--inside"]:
        inside(sys.argv[2])
        return
    with tempfile.TemporaryDirectory(prefix="fairgv-pages-") as root:
        install.make("install", f"DESTDIR={root}")
        words = Words(SOURCE, BUILD, root, DIRS)
        mistakes_are_found(words)
        look_at_pages(words)
        run_pages(root)


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"{failure}")
