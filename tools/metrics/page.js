"use strict";
// The page of fairgv-metrics: asks for the daemon's report each second and draws, for each GPU, the
// shares that its VMs are owed and use, their waits and their memory. What reports say, such as names
// of programs, is only ever put into the page as text.

const KEPT_S = 300, EVERY_MS = 1000, NS = 1e9, PPM = 1e6;
const WIDTH = 600, HEIGHT = 160;
const COLOURS = ["#3b82c4", "#e08a1e", "#3a9d5d", "#c9423f", "#8a63b8", "#9a6b4f", "#d477a8", "#6f7a80",
	"#a3a32a", "#2aa5b3"];
const SVG = "http://www.w3.org/2000/svg";

// --- Figures ------------------------------------------------------------------------------------

// A daemon that was started anew counts from 0 again.
function since(later, earlier) {
	return later >= earlier ? later - earlier : later;
}

function like(list, object, key) {
	return (list || []).find(other => other[key] === object[key]);
}

// The time that 99 of 100 waits between the two did not exceed, in seconds.
function waitP99(wait, before) {
	const old = new Map(before ? before.histogram : []);
	const buckets = wait.histogram.map(([edge, count]) => [edge, since(count, old.get(edge) || 0)]);
	const all = buckets.reduce((sum, [, count]) => sum + count, 0);
	let seen = 0;

	for (const [edge, count] of buckets) {
		seen += count;
		if (all && seen >= 0.99 * all)
			return Math.min(edge === null ? wait.max_ns : edge, wait.max_ns) / NS;
	}
	return 0;
}

// What the VM's weight gives it, within what it is promised and allowed.
function owedTo(vm, gpu) {
	const owed = Math.max(gpu.weight ? vm.weight / gpu.weight : 0, vm.request_ppm / PPM);

	return vm.limit_ppm ? Math.min(owed, vm.limit_ppm / PPM) : owed;
}

function vmOn(vm, share, gpu, before, ns) {
	const old = before && like(before.gpus, share, "device");

	return {
		name: vm.name, weight: vm.weight, sessions: vm.sessions.length, owed: owedTo(vm, gpu),
		used: old ? since(share.gpu_ns, old.gpu_ns) / ns : 0,
		wait: waitP99(vm.wait, before && before.wait), memory: share.memory_bytes,
		limit: vm.memory_limit_bytes,
	};
}

// What one report tells beside the one before it.
function sampleOf(report, before) {
	const ns = since(report.time_ns, before.time_ns);

	return {
		time: report.time_ns / NS,
		gpus: report.gpus.map(gpu => ({
			device: gpu.device, name: gpu.name, policy: gpu.policy, memory: gpu.memory_bytes,
			vms: report.vms.flatMap(vm => vm.gpus.filter(share => share.device === gpu.device)
				.map(share => vmOn(vm, share, gpu, like(before.vms, vm, "name"), ns))),
		})),
	};
}

// --- Texts --------------------------------------------------------------------------------------

function percent(share) {
	return `${(100 * share).toFixed(1)}%`;
}

function seconds(s) {
	if (!s)
		return "-";
	return s < 1e-3 ? `${(s * 1e6).toFixed(0)} \u00b5s` : s < 1 ? `${(s * 1e3).toFixed(1)} ms` : `${s.toFixed(2)} s`;
}

function bytes(count) {
	const units = ["B", "KiB", "MiB", "GiB", "TiB"];
	let unit = 0;

	for (; count >= 1024 && unit + 1 < units.length; unit++)
		count /= 1024;
	return `${count.toFixed(unit ? 1 : 0)} ${units[unit]}`;
}

// --- Drawing ------------------------------------------------------------------------------------

function element(tag, attributes, ...children) {
	const node = document.createElement(tag);

	return fill(node, attributes, children);
}

function drawing(tag, attributes, ...children) {
	return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(node, attributes, children) {
	for (const [name, value] of Object.entries(attributes))
		node.setAttribute(name, value);
	for (const child of children) {
		if (typeof child === "string")
			node.textContent = child;
		else
			node.appendChild(child);
	}
	return node;
}

// One figure of one VM of one GPU, over the time that is kept: the newest is at the right.
function line(history, device, vm, figure, most, attributes) {
	const now = history[history.length - 1].time;
	const points = [];

	for (const sample of history) {
		const gpu = like(sample.gpus, {device}, "device");
		const found = gpu && like(gpu.vms, vm, "name");
		const x = WIDTH * (1 - (now - sample.time) / KEPT_S);

		if (found)
			points.push(`${x.toFixed(1)},${(HEIGHT * (1 - Math.min(found[figure] / most, 1))).toFixed(1)}`);
	}
	return drawing("polyline", {points: points.join(" "), "data-vm": vm.name, ...attributes});
}

function chart(title, history, gpu, figures, most) {
	const svg = drawing("svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img",
		"aria-label": title});

	gpu.vms.forEach((vm, i) => {
		for (const figure of figures)
			svg.appendChild(line(history, gpu.device, vm, figure, most,
				{stroke: COLOURS[i % COLOURS.length], class: figure}));
	});
	return element("div", {}, element("h3", {}, title), svg);
}

// The largest value of the figure that is kept of this GPU, for the scale.
function largest(history, device, figure) {
	return Math.max(0, ...history.flatMap(sample => sample.gpus.filter(gpu => gpu.device === device)
		.flatMap(gpu => gpu.vms.map(vm => vm[figure]))));
}

function table(gpu) {
	const head = ["VM", "weight", "owed", "used", "wait p99", "memory", "quota", "programs"];
	const rows = gpu.vms.map((vm, i) => element("tr", {},
		element("td", {class: "key", style: `--colour: ${COLOURS[i % COLOURS.length]}`}, vm.name),
		...[String(vm.weight), percent(vm.owed), percent(vm.used), seconds(vm.wait), bytes(vm.memory),
			vm.limit === null ? "-" : bytes(vm.limit), String(vm.sessions)].map(text => element("td", {}, text))));

	return element("table", {}, element("tr", {}, ...head.map(text => element("th", {}, text))), ...rows);
}

function section(history, gpu) {
	const wait = largest(history, gpu.device, "wait");

	return element("section", {"data-gpu": gpu.device},
		element("h2", {}, `GPU ${gpu.device}: ${gpu.name}, policy ${gpu.policy}, ${bytes(gpu.memory)}`),
		element("div", {class: "charts"},
			chart("used, and owed (dashed), to 100% of the GPU's time", history, gpu, ["owed", "used"], 1),
			chart(`wait for the GPU (99 of 100), to ${seconds(wait)}`, history, gpu, ["wait"], wait || 1),
			chart(`memory, to ${bytes(gpu.memory)}`, history, gpu, ["memory"], gpu.memory || 1)),
		table(gpu));
}

function draw(history) {
	const newest = history[history.length - 1];

	document.getElementById("gpus").replaceChildren(...newest.gpus.map(gpu => section(history, gpu)));
}

// --- Asking -------------------------------------------------------------------------------------

function say(text) {
	document.getElementById("status").textContent = text;
}

async function ask() {
	const reply = await fetch("report", {cache: "no-store"});

	if (!reply.ok)
		throw new Error(await reply.text());
	return reply.json();
}

// The report before, and what is kept of those before it.
const past = {report: null, history: []};

async function goOn() {
	try {
		const report = await ask(), before = past.report;

		past.report = report;
		if (before && report.time_ns !== before.time_ns) {
			const sample = sampleOf(report, before);
			// Of a daemon that was started on another day, nothing fits together.
			past.history = past.history.filter(old => old.time < sample.time && sample.time - old.time <= KEPT_S);
			past.history.push(sample);
			draw(past.history);
			say(`the last ${KEPT_S / 60} minutes, each second`);
		}
	} catch (error) {
		say(error.message);
	}
	setTimeout(goOn, EVERY_MS);
}

goOn();
