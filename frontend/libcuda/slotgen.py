#!/usr/bin/env python3
"""Makes C of the export tables: slotgen.py TABLES_TXT

tables.txt says what there is. Prints the functions of entries that are refused, the tables, and
TABLE(address, bytes of the UUID) for each, with NULL for those that are known not to be there.
"""

import re
import sys

OTHERS = ("refuse", "ignore", "null")


class Table:
    def __init__(self, name, uuid, words, others):
        self.name, self.uuid, self.words, self.others = name, uuid, words, others
        self.entries = {}

    def slot(self, index):
        """C of one word, as an initializer."""
        if index in self.entries:
            return f"(void *){self.entries[index]}"
        if index == 0:
            return f"(void *)({self.words} * sizeof(void *))"
        return {"refuse": f"(void *)refuse_{self.name}_{index}", "ignore": "(void *)ignore",
                "null": "NULL"}[self.others]

    def refused(self):
        if self.others != "refuse":
            return []
        return [i for i in range(1, self.words) if i not in self.entries]


def read(path):
    """The tables, and the UUIDs of those that are not there."""
    tables, absent = [], []
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        line = line.partition("#")[0].rstrip()
        match = re.fullmatch(r"(\w+) ([0-9a-f]{32}) (\d+) (\w+)|\s+(\d+) (\w+)", line)
        if re.fullmatch(r"- [0-9a-f]{32}", line):
            absent.append(line[2:])
            continue
        if not line:
            continue
        if not match or (match[1] and match[4] not in OTHERS) or (match[5] and not tables):
            sys.exit(f"{path}:{number}: neither a table nor an entry of one")
        if match[1]:
            tables.append(Table(match[1], match[2], int(match[3]), match[4]))
        elif int(match[5]) >= tables[-1].words or int(match[5]) in tables[-1].entries:
            sys.exit(f"{path}:{number}: {tables[-1].name} has no room for an entry {match[5]}")
        else:
            tables[-1].entries[int(match[5])] = match[6]
    return tables, absent


def row(address, uuid):
    numbers = ", ".join(f"0x{byte:02x}" for byte in bytes.fromhex(uuid))
    return f"\tTABLE({address}, {numbers}) \\"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    tables, absent = read(sys.argv[1])
    for table in tables:
        for index in table.refused():
            print(f"REFUSE({table.name}, {index})")
    for table in tables:
        words = ",\n\t".join(table.slot(i) for i in range(table.words))
        print(f"void *const fgv_table_{table.name}[{table.words}] = {{\n\t{words},\n}};")
    print("#define TABLES \\")
    for table in tables:
        print(row("fgv_table_" + table.name, table.uuid))
    for uuid in absent:
        print(row("NULL", uuid))
    print()


main()
