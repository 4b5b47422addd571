"use strict";
// Runs the script of a page with replies that it gets one after the other, in the place of a browser:
//	node page_run.js PAGE REPLIES
// REPLIES is JSON, a list of {"status", "text"}. Prints, as JSON, what is in the page after each of them.
// The elements know what the page may use, and nothing that would read a text as HTML.
const fs = require("fs");
const vm = require("vm");

class Element {
	constructor(tag, namespace) {
		Object.assign(this, {tag, namespace, attributes: {}, children: [], text: ""});
	}

	setAttribute(name, value) {
		this.attributes[name] = String(value);
	}

	appendChild(child) {
		this.children.push(child);
		return child;
	}

	replaceChildren(...children) {
		this.children = children;
	}

	set textContent(text) {
		this.children = [];
		this.text = String(text);
	}
}

const [page, replies] = [fs.readFileSync(process.argv[2], "utf8"), JSON.parse(fs.readFileSync(process.argv[3], "utf8"))];
const script = /<script>([^]*)<\/script>/.exec(page)[1];
const named = {};
const shown = [];
let step = null;

for (const [, tag, id] of page.replace(script, "").matchAll(/<(\w+) id="(\w+)"/g))
	named[id] = new Element(tag, "html");

const sandbox = {
	document: {
		createElement: tag => new Element(tag, "html"),
		createElementNS: (namespace, tag) => new Element(tag, namespace),
		getElementById: id => named[id],
	},
	fetch: async path => {
		const reply = replies.shift();

		if (path !== "report")
			throw new Error(`asks for ${path}`);
		return {ok: reply.status === 200, text: async () => reply.text, json: async () => JSON.parse(reply.text)};
	},
	setTimeout: next => { step = next; },
};

async function main() {
	let next = () => vm.runInNewContext(script, sandbox);

	while (replies.length) {
		step = null;
		next();
		while (!step)
			await new Promise(setImmediate);
		next = step;
		shown.push(JSON.parse(JSON.stringify(named)));
	}
	console.log(JSON.stringify(shown));
}

main();
