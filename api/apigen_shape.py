"""The emitter of the shapes: of what each operation's messages are made, for programs
that make some."""

from typing import List

from apigen_emit import banner, wrap
from apigen_parse import HANDLES, OPTIONAL, SPANS, Api, Arg, Op

PLAIN = {"u32": "FGV_SHAPE_NUMBER", "i32": "FGV_SHAPE_NUMBER", "u64": "FGV_SHAPE_WORD",
         "f32": "FGV_SHAPE_FLOAT", "bytes": "FGV_SHAPE_BYTES"}


def form(arg: Arg) -> str:
    if arg.type in SPANS:
        return "FGV_SHAPE_" + arg.type.upper()
    if arg.type in HANDLES:
        return "FGV_SHAPE_OPTIONAL" if arg.type in OPTIONAL else "FGV_SHAPE_HANDLE"
    return PLAIN[arg.type]


def field(op: Op, arg: Arg, part: str) -> str:
    kind = "FGV_KIND_" + arg.type.upper() if arg.type in HANDLES else "0"
    members = arg.members()
    struct = f"struct fgv_{op.name}_{part}"
    offset = f"offsetof({struct}, {members[0].name})" if members else "0"
    return wrap("\t\t\t{", [f'"{arg.name}"', form(arg), kind, offset, str(max(arg.count, 1))],
                "},")


def fields(op: Op, name: str, args: List[Arg], part: str) -> List[str]:
    if not args:
        return []
    return [f"\t\t.{name}_count = {len(args)},",
            f"\t\t.{name}s = (const struct fgv_shape_field[]){{",
            *(field(op, arg, part) for arg in args), "\t\t},"]


def source(api: Api) -> str:
    lines = [banner(api, "Of what each operation's messages are made."), '#include "api/shape.h"',
             "", "#include <stddef.h>", '#include "api/host.h"', f'#include "api/{api.stem}_wire.h"',
             "", "const struct fgv_shape fgv_shapes[FGV_OP_MAX + 1] = {"]
    for op in api.ops:
        lines += [f"\t[{op.enum}] = {{", *fields(op, "in", op.ins, "request"),
                  *fields(op, "out", op.outs, "reply"), "\t},"]
    return "\n".join([*lines, "};"]) + "\n"
