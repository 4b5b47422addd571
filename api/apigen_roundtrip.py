"""The emitter of the round-trip test: for each operation the part that knows its arguments.

What is done with it, and what the emitted struct trip means, is in
tests/unit/api/test_api_roundtrip.h.
"""

from typing import List

from apigen_emit import banner, function, handler_params, statement, wrap
from apigen_parse import HANDLES, OPTIONAL, SPANS, Api, Op


def kind(arg_type: str) -> str:
    return f"FGV_KIND_{arg_type.upper()}"


def storage(op: Op) -> List[str]:
    lines = []
    if op.request.size:
        lines.append(f"static struct fgv_{op.name}_request sent_{op.name};")
    if op.outs:
        lines.append(f"static struct fgv_{op.name}_out give_{op.name}, got_{op.name};")
    return lines + [""] if lines else []


def same(got: str, want: str, count: int) -> str:
    at = "" if count else "&"
    return statement("ck_assert_mem_eq(", [at + got, at + want, f"sizeof({want})"])


def handler(op: Op) -> List[str]:
    body = [f"trip_enter(session, request, {op.enum});"]
    for arg in op.ins:
        got, sent = f"in->{arg.name}", f"sent_{op.name}.{arg.name}"
        if arg.type in SPANS:
            body.append(statement("trip_is_span(", [got, got + "_len", sent + "_off",
                                                    sent + "_len"]))
        elif arg.type == "bytes":
            body.append(f"trip_is_data({got}, {got}_len);")
        elif arg.type in HANDLES:
            body.append(statement("trip_is_object(", [got, kind(arg.type), sent]))
        else:
            body.append(same(got, sent, arg.count))
    body += [f"*out = give_{op.name};"] if op.outs else []
    return function(f"CUresult fgv_do_{op.name}", handler_params(op),
                    [*body, "return trip_answer();"])


def draw(op: Op) -> List[str]:
    body = []
    if op.request.size:
        body.append(f"trip_random(&sent_{op.name}, sizeof(sent_{op.name}));")
    for arg in op.ins:
        sent = f"sent_{op.name}.{arg.name}"
        if arg.type in SPANS:
            body.append(f"trip_span(&{sent}_off, &{sent}_len);")
        elif arg.type in OPTIONAL:
            body.append(f"{sent} = trip_optional({kind(arg.type)});")
        elif arg.type in HANDLES:
            body.append(f"{sent} = trip_handle({kind(arg.type)});")
    if op.outs:
        body.append(f"trip_random(&give_{op.name}, sizeof(give_{op.name}));")
    return function(f"static void draw_{op.name}", [], body) if body else []


def arguments(op: Op) -> List[str]:
    return [f"sent_{op.name}.{m.name}" for arg in op.ins for m in arg.members()]


def send(op: Op) -> List[str]:
    outs = [f"{'' if arg.count else '&'}got_{op.name}.{arg.name}" for arg in op.outs]
    data = ["data", "len"] if op.bytes else []
    body = [] if op.bytes else ["(void)data;", "(void)len;"]
    body.append(statement(f"return fgv_{'call' if op.call else 'post'}_{op.name}(",
                          ["lane", *arguments(op), *data, *outs]))
    return function(f"static CUresult send_{op.name}",
                    ["struct fgv_lane *lane", "const void *data", "uint32_t len"], body)


def begin(op: Op) -> List[str]:
    return function(f"static void *begin_{op.name}", ["struct fgv_lane *lane", "uint32_t len"],
                    [statement(f"return fgv_begin_{op.name}(", ["lane", *arguments(op), "len"])])


def compare(op: Op) -> List[str]:
    return function(f"static void compare_{op.name}", [],
                    [same(f"got_{op.name}.{arg.name}", f"give_{op.name}.{arg.name}", arg.count)
                     for arg in op.outs])


def checks(op: Op) -> List[str]:
    """Initializers of struct trip_field."""
    struct = f"struct fgv_{op.name}_request"
    rows = [["TRIP_RESERVED", f"offsetof({struct}, {m.name})", "0"]
            for m in op.request.reserved()]
    for arg in op.ins:
        if arg.type in SPANS:
            rows.append(["TRIP_SPAN", f"offsetof({struct}, {arg.name}_off)", "0"])
        elif arg.type in HANDLES:
            rows.append(["TRIP_OPTIONAL" if arg.type in OPTIONAL else "TRIP_HANDLE",
                         f"offsetof({struct}, {arg.name})", kind(arg.type)])
    return [wrap("\t\t\t{", row, "},") for row in rows]


def array(field: str, ctype: str, rows: List[str]) -> List[str]:
    if not rows:
        return []
    return [f"\t\t.{field}_count = {len(rows)},", f"\t\t.{field}s = (const {ctype}[]){{", *rows,
            "\t\t},"]


def entry(op: Op, drawn: bool, begun: bool) -> List[str]:
    lines = ["\t{", f"\t\t.op = {op.enum},", f"\t\t.send = send_{op.name},"]
    lines += [f"\t\t.draw = draw_{op.name},"] if drawn else []
    lines += [f"\t\t.begin = begin_{op.name},"] if begun else []
    if op.outs:
        lines += [f"\t\t.compare = compare_{op.name},", f"\t\t.got = &got_{op.name},",
                  f"\t\t.got_len = sizeof(got_{op.name}),"]
    gaps = [f"\t\t\toffsetof(struct fgv_{op.name}_reply, {m.name})," for m in op.reply.reserved()]
    return [*lines, *array("field", "struct trip_field", checks(op)),
            *array("reply_gap", "uint32_t", gaps), "\t},"]


def source(api: Api) -> str:
    lines = [banner(api, "Each operation's part of the round-trip test."),
             '#include "tests/unit/api/test_api_roundtrip.h"', "",
             f'#include "api/{api.stem}_guest.h"', f'#include "api/{api.stem}_host.h"', ""]
    table = []
    for op in api.ops:
        drawn, begun = draw(op), begin(op) if op.bytes and not op.call else []
        lines += [*storage(op), *handler(op), *drawn, *send(op), *begun]
        lines += compare(op) if op.outs else []
        table += entry(op, bool(drawn), bool(begun))
    lines += ["const struct trip trips[] = {", *table, "};",
              "const uint32_t trip_count = sizeof(trips) / sizeof(trips[0]);"]
    return "\n".join(lines) + "\n"
