"""The figures of a program of tests/gpu: each is printed when it is there, and all are kept in
$OUT/NAME.json, if OUT is set."""
import json
import os
import pathlib


def text_of(value):
    return f"{value:.3f}" if isinstance(value, float) else str(value)


class Results(dict):
    def __init__(self, name):
        super().__init__()
        self.name = name

    def keep(self):
        folder = os.environ.get("OUT")
        if folder:
            pathlib.Path(folder, f"{self.name}.json").write_text(json.dumps(self, indent=1),
                                                                 encoding="utf-8")

    def report(self, name, **figures):
        self[name] = figures
        self.keep()
        print(f"  {name}: " + ", ".join(f"{key} {text_of(value)}"
                                        for key, value in figures.items()), flush=True)
