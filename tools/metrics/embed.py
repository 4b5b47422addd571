"""Makes page.h of the page and its script: one text in C, and the policy that lets this script run,
and no other, and load nothing from elsewhere."""
import base64
import hashlib
import pathlib
import sys


def c_string(text):
    lines = text.replace("\\", "\\\\").replace('"', '\\"').split("\n")
    return "\n".join(f'\t"{line}\\n"' for line in lines[:-1])


def main(page_path, script_path, out_path):
    page = pathlib.Path(page_path).read_text(encoding="utf-8")
    script = pathlib.Path(script_path).read_text(encoding="utf-8")
    if page.count("@SCRIPT@") != 1 or "</script" in script or not page.isascii() or not script.isascii():
        sys.exit(f"{page_path}: one @SCRIPT@, and ASCII, are wanted")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = ("default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
              f"connect-src 'self'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'")
    pathlib.Path(out_path).write_text(
        f'/* Made of page.html and page.js by embed.py. */\n#define FGV_PAGE_POLICY "{policy}"\n'
        f"static const char fgv_page_text[] =\n{c_string(page.replace('@SCRIPT@', script))};\n",
        encoding="utf-8")


main(*sys.argv[1:])
