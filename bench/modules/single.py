"""The words launch, copy, alloc, streams, graphs and start of bench: what single CUDA calls cost."""
import time

from common import BUILD, positive
from pairs import Measurement, Pair, Target, add_options

SOFT_SAMPLES = 3
SOFT = {"launch": ("--sustained", 100), "copy": ("--max-mib", 1), "alloc": (),
        "streams": ("--max-us", 460, "--copy-mib", 4), "graphs": ("--max-nodes", 10)}

LAUNCH = {
    "launch_call": Measurement("asynchronous launch, the call", Target("fairgv", 0.15)),
    "launch_call_params": Measurement("the same with 4 parameters", Target("fairgv", 0.15)),
    "launch_sync": Measurement("launch + cudaDeviceSynchronize", Target("difference", 0.5)),
    "launch_sustained": Measurement("sustained empty launches, each", Target("ratio", 1)),
    "launch_any": Measurement("the same, kernels, shapes and arguments at random",
                              Target("ratio", 0.65)),
    "launch_fifty_new": Measurement("the same 50 kernels again and again, new arguments",
                                    Target("ratio", 0.40)),
    "launch_fifty_same": Measurement("with the same arguments", Target("ratio", 0.20)),
    "sync_idle": Measurement("cudaDeviceSynchronize, idle device"),
}

ALLOC = {
    "malloc_free_256B": Measurement("cudaMalloc + cudaFree, 256 B"),
    "malloc_free_256B_beside": Measurement("the same beside others", Target("fairgv", 1.5)),
    "malloc_free_1MiB": Measurement("cudaMalloc + cudaFree, 1 MiB"),
    "malloc_free_1MiB_beside": Measurement("the same beside others", Target("fairgv", 1.5)),
    "malloc_free_64MiB": Measurement("cudaMalloc + cudaFree, 64 MiB"),
    "malloc_async_256B": Measurement("cudaMallocAsync + cudaFreeAsync, 256 B"),
    "malloc_async_1MiB": Measurement("cudaMallocAsync + cudaFreeAsync, 1 MiB"),
    "malloc_host_1MiB": Measurement("cudaMallocHost + cudaFreeHost, 1 MiB"),
}

COPY_SMALL = {"in_4B": "cudaMemcpy of 4 B to the device",
              "out_4B": "cudaMemcpy of 4 B from the device"}
# Of copies as large as the ones that the targets are for.
COPY_TARGETS = {"pageable": Target("fairgv", 25, at_least=True),
                "pinned": Target("ratio", 0.99, at_least=True),
                "registered": Target("ratio", 0.99, at_least=True)}
COPY_TARGET_SIZE = "512MiB"

COPY_BESIDE = {"copy_alone": Measurement("a copy to the device alone"),
               "copy_beside_kernel": Measurement("the same beside a kernel as long",
                                                 Target("ratio", 1.03))}

# What name=graph_KIND_NODES says; a launch may cost so much more than natively, in all.
GRAPHS = {
    "empty": ("a graph of {} empty kernels, a launch", Target("difference", 1.5)),
    "work": ("a graph of {} kernels of 1.7 us, a launch", Target("difference", 1.5)),
    "call": ("a graph of {} nodes, the call of its launch", Target("fairgv", 1)),
    "capture": ("a graph of {} nodes, captured, instantiated, launched and destroyed",
                Target("ratio", 1.2)),
    "instantiate": ("a graph of {} nodes, instantiated, launched and destroyed", Target("ratio", 1.2)),
    "first": ("a graph of {} nodes with other arguments each time, instantiated, launched and "
              "destroyed", Target("ratio", 1.2)),
    "shape": ("a graph of {} nodes with other edges each time, instantiated, launched and destroyed",
              Target("ratio", 1.2)),
    "update": ("a graph of {} nodes, all of them changed, and launched", Target("ratio", 1.2)),
    "set_params": ("a graph of {} nodes, one of them changed, and launched", Target("ratio", 1.2)),
}
BRANCHES = Measurement("a graph of 8 branches of 10 kernels of 46 us", Target("ratio", 1.03))

START = {
    "first_call": Measurement("first CUDA call", Target("fairgv", 50)),
    "first_kernel": Measurement("first kernel, until it is done"),
    "process": Measurement("the whole process"),
    "first_call_cold": Measurement("first CUDA call, no process was ready"),
    "first_kernel_cold": Measurement("first kernel then"),
    "process_cold": Measurement("the whole process then"),
}
# Processes that the daemon keeps ready, by how the rows' names end.
STARTS = {"": 1, "_cold": 0}


def copy_measurement(name):
    """What name=KIND_DIRECTION_SIZE says, and its target."""
    if name in COPY_SMALL:
        return Measurement(COPY_SMALL[name], Target("difference", 0.5))
    kind, direction, size = name.split("_")
    target = COPY_TARGETS[kind] if size == COPY_TARGET_SIZE else None
    where = "to the device" if direction == "in" else "from the device"
    return Measurement(f"{kind}, {where}, {size}", target)


def streams_measurement(name):
    """What name=streams_COUNT_TIME says, and its target."""
    if name in COPY_BESIDE:
        return COPY_BESIDE[name]
    _, count, each = name.split("_")
    return Measurement(f"{count} kernels of {each.removesuffix('us')} us side by side",
                       Target("ratio", 1.03))


def graphs_measurement(name):
    if name == "graph_branches":
        return BRANCHES
    kind, _, nodes = name.removeprefix("graph_").rpartition("_")
    what, target = GRAPHS[kind]
    return Measurement(what.format(nodes), target)


def figures_of(lines):
    """{name: (median, unit)} of a program's lines."""
    return {line["name"]: (float(line["median"]), line["unit"])
            for line in lines if "name" in line}


def single(options, measurements):
    """One program's measurements, each process of it taking its turn."""
    with Pair(options) as pair:
        arguments = SOFT[options.word] if pair.soft else ()
        samples = options.samples or (SOFT_SAMPLES if pair.soft else None)
        if samples:
            arguments = (*arguments, "--samples", samples)

        runs = pair.in_turns(lambda way: figures_of(
            way.run(BUILD / "bench" / options.word, *arguments)))
        return pair.result(pair.rows(runs, measurements))


def launch(options):
    return single(options, LAUNCH.get)


def copy(options):
    return single(options, copy_measurement)


def alloc(options):
    return single(options, ALLOC.get)


def streams(options):
    return single(options, streams_measurement)


def graphs(options):
    return single(options, graphs_measurement)


def start_once(pair, way, ending):
    if STARTS[ending]:
        pair.await_warm()
    began = time.monotonic()
    lines = way.run(BUILD / "bench/start")
    passed_ms = (time.monotonic() - began) * 1e3
    figures = {**figures_of(lines), "process": (passed_ms, "ms")}
    return {name + ending: figure for name, figure in figures.items()}


def start(options):
    rows = []
    for ending, warm in STARTS.items():
        with Pair(options, warm) as pair:
            runs = pair.in_turns(lambda way: start_once(pair, way, ending))
            rows += pair.rows(runs, START.get)
    return pair.result(rows)


def add_words(measurements):
    for measure, text in ((launch, "what launches and synchronizations cost"),
                          (copy, "what copies between host and device cost"),
                          (alloc, "what getting memory and giving it back costs"),
                          (streams, "whether kernels and copies run side by side"),
                          (graphs, "what graphs cost: launches, instantiating, changes")):
        word = measurements.add_parser(measure.__name__, help=text)
        word.set_defaults(measure=measure)
        word.add_argument("--samples", type=positive, metavar="N",
                          help="samples of each measurement in a run")
        add_options(word, repeat=5)
    word = measurements.add_parser("start", help="what a program's beginning costs")
    word.set_defaults(measure=start)
    add_options(word, repeat=7)
