"""Whether what a command names exists: its options and words, units, packages, paths of ours."""
import pathlib
import re
import shlex
import subprocess

from rules import OTHERS_PACKAGES

OURS = ("fairgvctl", "fairgv-run", "fairgv-vm", "fairgv-region", "fairgv-sim", "fairgv-backend",
        "fairgv-metrics")


class Wrong(Exception):
    pass


def need(condition, what):
    if not condition:
        raise Wrong(what)


class Words:
    """@source and @build are trees, @root is where the build was installed, @dirs its folders there."""

    def __init__(self, source, build, root, dirs):
        self.source, self.build, self.root, self.dirs = source, build, root, dirs
        self.helps = {}

    def help_of(self, *command):
        if command not in self.helps:
            done = subprocess.run([*command, "--help"], capture_output=True, text=True, check=False)
            need(done.returncode == 0, f"{command} --help: {done.stderr}")
            self.helps[command] = done.stdout
        return self.helps[command]

    def program(self, name):
        folder = "sbindir" if name in ("fairgv-backend", "fairgv-metrics") else "bindir"
        path = pathlib.Path(f"{self.root}{self.dirs[folder]}/{name}")
        need(path.exists(), f"{name} is not installed")
        return path

    def look(self, command):
        for part in re.split(r" (?:&&|\|\||\||>) ", command):
            words = [word for word in shlex.split(part, comments=True)]
            while words and (words[0] == "sudo" or re.fullmatch(r"\w+=.*", words[0])):
                words.pop(0)
            if words:
                self.look_at(words)

    def look_at(self, words):
        name = pathlib.PurePath(words[0]).name
        need(name in OURS or not re.match(r"fairgv(ctl|-)", name), f"{name} is no program")
        if name in OURS:
            self.tool(name, words[1:])
        elif name in ("quickstart", "configure", "make", "bench", "systemctl", "apt-get", "dkms", "modprobe"):
            getattr(self, name.replace("-", "_"))(words[1:])
        for word in words:
            self.path(word)

    def options(self, words, text, what):
        for word in words:
            option = re.match(r"--[a-z][a-z-]*", word)
            need(not option or re.search(rf"{option[0]}(?![a-z-])", text), f"{what} has no {option and option[0]}")

    # --- Ours ---

    def tool(self, name, words):
        text = self.help_of(str(self.program(name)))
        if name in ("fairgv-run", "fairgv-vm"):     # behind the program all is the program's
            words = own_words(words, text, 1 if name == "fairgv-vm" else 0)
        self.options(words, text, name)
        if name == "fairgvctl":
            self.ctl(own_values_away(words, text), text)
        if name == "fairgv-sim" and words[:1] == ["figure"]:
            known = re.findall(r"[\w-]+", " ".join(re.findall(r"figure (\S+)", text)))
            need(words[1] in known, f"fairgv-sim has no figure {words[1]}")

    def ctl(self, words, text):
        known = re.findall(r"fairgvctl \[OPTION\]\.\.\. (\w+)", text)
        if words:
            need(words[0] in known, f"fairgvctl has no {words[0]}")
        if words[:1] == ["set"]:
            page = (self.source / "man/fairgvctl.1").read_text()
            keys = re.findall(r"^\.BR? (\w+)", page.split("The keys are")[1].split("explains")[0], re.M)
            for word in words[2:]:
                need(word.split("=")[0] in keys, f"set knows no {word.split('=')[0]}")

    def quickstart(self, words):
        text = subprocess.run([self.source / "quickstart", "help"], capture_output=True, text=True,
                              check=True).stdout
        need(re.search(rf"^  {re.escape(' '.join(words))}( |$)", text, re.M),
             f"quickstart has no {' '.join(words)}")

    def bench(self, words):
        text = self.help_of(str(self.build / "bench/bench"))
        known = re.findall(r"^    (\w+)", text, re.M)
        if words and words[0] != "WORD":
            need(words[0] in known, f"bench has no {words[0]}")
            self.options(words, self.help_of(str(self.build / "bench/bench"), words[0]), f"bench {words[0]}")

    # --- Building ---

    def configure(self, words):
        text = self.help_of(str(self.source / "configure"))
        for word in words:
            option = re.match(r"--(?:en|dis)able-([a-z-]+)|--with(?:out)?-([a-z-]+)|(--[a-z-]+)", word)
            if option:
                name = option[1] or option[2] or option[3]
                need(re.search(rf"-{re.escape(name)}\b" if option[3] is None else rf"{option[3]}\b", text),
                     f"configure has no {word}")

    def make(self, words):
        if "/lib/modules/" in " ".join(words):
            return
        text = (self.build / "Makefile").read_text()
        values = re.compile(r"-[Cj]$")
        goals = [word for before, word in zip(["", *words], words)
                 if not word.startswith("-") and "=" not in word and not values.match(before)]
        for goal in goals:
            need(re.search(rf"^([\w./-]+ )*{re.escape(goal)}( [\w./-]+)*:", text, re.M),
                 f"make has no goal {goal}")

    # --- The system's ---

    def systemctl(self, words):
        for word in words:
            if word.startswith("fairgv"):
                need(self.unit(word).exists(), f"there is no unit {word}")

    def unit(self, name):
        return pathlib.Path(f"{self.root}{self.dirs['systemunitdir']}/{name.removesuffix('.service')}.service")

    def apt_get(self, words):
        control = (self.source / "packaging/debian/control").read_text()
        for word in words[1:]:
            if word.startswith("-"):
                continue
            if "/" in word:
                name = pathlib.PurePath(word).name.split("_")[0]
                need(f"Package: {name}\n" in control, f"there is no package {name}")
            elif word not in OTHERS_PACKAGES:
                self.library_package(word)

    def library_package(self, name):
        """Debian calls it by its soname; the guest's tools must want it."""
        needed = subprocess.run(["readelf", "-d", *map(str, (self.program("fairgv-run"), self.program("fairgv-region"),
                                 pathlib.Path(f"{self.root}{self.dirs['pkglibdir']}/libfairgv.so.0")))],
                                capture_output=True, text=True, check=True).stdout
        libraries = {f"{stem}{'-' if stem[-1].isdigit() else ''}{version}"
                     for stem, version in re.findall(r"\[(\S+)\.so\.(\d+)\]", needed)}
        need(name in libraries, f"nothing of the guest's wants {name}, but {sorted(libraries)}")

    def dkms(self, words):
        text = pathlib.Path(f"{self.root}{self.dirs['dkmsdir']}/dkms.conf").read_text()
        name, version = (re.search(rf'PACKAGE_{key}="(.*)"', text)[1] for key in ("NAME", "VERSION"))
        for word in words[1:]:
            if re.fullmatch(r"[\w-]+/[\d.]+", word):
                need(word == f"{name}/{version}", f"dkms.conf has {name}/{version}, not {word}")

    def modprobe(self, words):
        kbuild = (self.source / "guest-kmod/Kbuild").read_text()
        need(f"obj-m := {words[0]}.o" in kbuild, f"there is no module {words[0]}")

    def path(self, word):
        """Paths of ours: those in the source's and the build's tree, and those that are installed."""
        if "*" in word or "$" in word or ":" in word or "=" in word:
            return
        if word.startswith(f"{self.dirs['prefix']}/") and "fairgv" in word:
            need(pathlib.Path(f"{self.root}{word}").exists(), f"{word} is not installed")
        elif re.match(r"(docs|tests|tools|man|packaging|bench)/", word):
            need((self.source / word).exists() or (self.build / word).exists(), f"there is no {word}")
        elif word.startswith("build/"):
            need((self.build / word.removeprefix("build/")).exists(), f"the build makes no {word}")


def takes_value(option, text):
    return re.search(rf"{re.escape(option)} [A-Z]", text)


def own_values_away(words, text):
    """Without options and their values."""
    left, skip = [], False
    for word in words:
        if skip or word.startswith("-"):
            skip = not skip and word.startswith("-") and bool(takes_value(word, text))
        else:
            left.append(word)
    return left


def own_words(words, text, first):
    """Up to the program that is to run, before which there are @first words that are no options."""
    own, skip = [], False
    for word in words:
        if word == "--" or not (skip or word.startswith("-") or first):
            break
        first -= not (skip or word.startswith("-"))
        skip = not skip and bool(word.startswith("-") and takes_value(word, text))
        own.append(word)
    return own
