"""Which forms of instructions the soft GPU takes (forms.txt), that it refuses others by name and line,
and that docs/softgpu.md lists just these opcodes."""
import os
import re
import sys

from runner import Runner, fail, failed

HERE = os.path.dirname(os.path.abspath(__file__))
DOCUMENT = os.path.join(HERE, "../../docs/softgpu.md")
HEAD = """.version 9.0
.target sm_90
.address_size 64
.global .align 16 .b8 garr[256];
.const .align 16 .b8 carr[64] = {1, 2, 3};
.func (.param .b32 q) dev(.param .b32 p)
{ .reg .b32 %r<3>; ld.param.u32 %r1, [p]; st.param.b32 [q], %r1; ret; }
.visible .entry k(.param .u64 pout, .param .u64 pin)
{
.reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<30>; .reg .f32 %f<12>;
.reg .f64 %fd<9>; .reg .b64 %rd<20>;
.local .align 16 .b8 larr[64]; .shared .align 16 .b8 sarr[256]; .param .b32 p0; .param .b32 q0;
"""
# What only some forms need: registers that are refused themselves, tables, a prototype.
NEEDS = {"%rq": ".reg .b128 %rq<4>;", "%rb": ".reg .b8 %rb<5>;",
         "proto": "proto: .callprototype (.param .b32 _) _ (.param .b32 _);",
         "tgts": "tgts: .calltargets dev;", "tbl": "tbl: .branchtargets L1, L2;"}


def opcode(form):
    """add of @%p1 add.s32."""
    return re.sub(r"^@!?%\w+ ", "", form).split(".")[0].split(" ")[0].rstrip(";")


def check(runner, form, taken):
    needs = "".join(text for word, text in NEEDS.items() if word in form)
    text = HEAD + needs + "\n" + form + "\nL1: bar.sync 0; L2: ret;\n}\n"
    line = text[:text.index("\n" + form)].count("\n") + 2
    code, log = runner.run(text, 0, b"", 0)
    log = log.decode(errors="replace")
    if taken and code:
        fail(f"{form} is refused: {log}")
    if not taken and not code:
        fail(f"{form} is taken")
    if not taken and code and not re.match(rf"line {line}: |line {line - 1}: registers", log):
        fail(f"{form} is refused without its line {line}: {log}")


def documented():
    """The opcodes in the table under "What it runs"."""
    with open(DOCUMENT, encoding="utf-8") as f:
        section = re.search(r"## What it runs\n(.*?)\n## ", f.read(), re.S).group(1)
    rows = [line.split("|")[2] for line in section.splitlines() if line.startswith("| ")]
    return {word for row in rows for word in re.findall(r"`([a-z0-9]+)`", row)}


def main():
    runner = Runner()
    taken = set()
    with open(os.path.join(HERE, "forms.txt"), encoding="utf-8") as f:
        forms = [line.strip() for line in f if line.strip() and not line.startswith("#")]
    for form in forms:
        if not form.startswith("! "):
            taken.add(opcode(form))
        check(runner, form.removeprefix("! "), not form.startswith("! "))
    for word in sorted(taken ^ documented()):
        fail(f"{word} is {'not ' if word in taken else ''}in the table of docs/softgpu.md, but is "
             f"{'' if word in taken else 'not '}in forms.txt")
    runner.close()
    return failed()


sys.exit(main())
