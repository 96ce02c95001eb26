// task.js: one task from its submission to its outcome.

import { get, part, post, query } from "./api.js";
import { h, say, svg } from "./dom.js";
import { age, bytes, clock, number, plural, time } from "./format.js";
import { action, command, copyable, empty, handlerLink, keyLink, may, mono, taskLink, word } from "./parts.js";
import { why } from "./tasks.js";
import { redraw, state, wants } from "./state.js";

const LEVELS = { attempt: "warn", crash: "bad", timeout: "bad", interruption: "wait", later: "wait", requeued: "ok", done: "ok", started: "ok" };

export function title(parameters) {
	const { data } = wants(`task ${parameters.id}`, () => get(`/v1/tasks/${part(parameters.id)}`));
	if (!data)
		return "Task";
	const attempts = data.attempts ? `, after ${plural(data.attempts, "attempt")}` : "";
	return `A task of ${data.handler || "?"}: ${data.state}${attempts}`;
}

function event(level, at, before, content) {
	return h("li", { class: level }, h("span", { class: "at", title: at ? time(at) : null }, at ? clock(at) : "now",
		before && at ? h("div", { class: "muted" }, `+${age(Math.max(0, at - before))}`) : null), h("div", { class: "event" }, content));
}

// What happened, in the order of time: { at, level, kind, text, where }.  The last one is how it stands now.
function eventsOf(task) {
	const list = (task.history || []).map((e) => ({ at: e.at_ms, level: LEVELS[e.kind] || "warn", kind: e.kind, text: String(e.text || ""),
		where: [e.worker ? `worker ${e.worker}` : null, e.host ? `on ${e.host}` : null, e.pid ? `pid ${e.pid}` : null, e.version ? `version ${e.version}` : null,
			e.generation ? `generation ${e.generation}` : null, e.hash ? `file ${e.hash}` : null].filter(Boolean).join(", ") }));
	if (task.submitted_ms)
		list.unshift({ at: task.submitted_ms, level: "ok", kind: "submitted", text: "", where: "" });
	if (task.state === "running" && task.since_ms)
		list.push({ at: task.since_ms, level: "ok", kind: "started", text: "", where: [`on ${task.host || "?"}`, task.pid ? `pid ${task.pid}` : null, task.generation ? `generation ${task.generation}` : null, task.hash ? `file ${task.hash}` : null].filter(Boolean).join(", ") });
	if (task.state === "done" && task.ran_ms && task.at_ms)
		list.push({ at: task.at_ms - task.ran_ms, level: "ok", kind: "started", text: "", where: "" });
	return list;
}

// Bars from the submission to now: what was waited is grey, what ran has a colour, and how each attempt ended is a mark.
function bars(task, events, end) {
	const first = events[0]?.at, whole = end - first;
	if (!first || whole <= 0)
		return null;
	const x = (at) => Math.max(0, Math.min(1000, 1000 * (at - first) / whole));
	const parts = events.map((e, i) => {
		const next = events[i + 1], to = next?.at ?? end;
		const isRun = e.kind === "started";
		return { from: x(e.at), to: x(to), level: isRun ? "ok" : "wait", text: `${isRun ? "ran" : "waited"} ${age(Math.max(0, to - e.at))}${next ? ` until ${next.kind}` : ""}` };
	});
	const marks = events.filter((e) => e.kind !== "submitted" && e.kind !== "started");
	return svg("svg", { class: "bars", viewBox: "0 0 1000 16", preserveAspectRatio: "none", role: "img", "aria-label": `From its submission: ${parts.map((p) => p.text).join(", ")}, ${task.state}` },
		parts.map((p) => svg("rect", { class: p.level, x: p.from, y: 4, width: Math.max(0, p.to - p.from), height: 8 }, svg("title", {}, p.text))),
		marks.map((e) => svg("rect", { class: e.level, x: Math.min(992, x(e.at)), y: 0, width: 8, height: 16 }, svg("title", {}, `${e.kind} ${clock(e.at)}`))));
}

function timeline(task) {
	const events = eventsOf(task);
	const isOver = task.state === "dead" || task.state === "done" || task.state === "merged";
	const list = [];
	let before = 0;
	for (const e of events) {
		const lines = e.text.split("\n");
		const isCrash = e.kind === "crash";
		list.push(event(e.level, e.at, before, [h("strong", {}, e.kind), lines[0] ? `: ${lines[0]}` : "", e.where ? h("div", { class: "muted" }, e.where) : null,
			lines.length > 1 ? h("details", { open: isCrash }, h("summary", {}, isCrash ? "Where it crashed" : "All it said"), h("pre", {}, lines.join("\n"))) : null]));
		before = e.at;
	}
	const facts = task.state === "done" ? [task.host ? `on ${task.host}` : null, task.worker ? `worker ${task.worker}` : null, task.ran_ms ? `ran ${age(task.ran_ms)}` : null, task.attempt ? `attempt ${number(task.attempt)}` : null].filter(Boolean).join(", ") : why(task);
	list.push(event(task.state === "dead" ? "bad" : task.state === "running" || task.state === "done" ? "ok" : "wait", isOver ? task.at_ms : 0, before,
		[h("strong", {}, task.state), `: ${facts || "–"}`, task.behind ? [" ", taskLink(task.behind)] : null,
			task.state === "running" && task.progress?.[1] ? [" ", h("progress", { max: task.progress[1], value: task.progress[0], "aria-label": "progress" })] : null]));
	return [bars(task, events, isOver ? task.at_ms : state.at), h("ol", { class: "timeline" }, list)];
}

const shown = { id: null, form: "text", edited: null };

function payloadOf(task) {
	if (typeof task.payload === "string")
		return new TextEncoder().encode(task.payload);
	if (typeof task.payload_base64 === "string")
		return Uint8Array.from(atob(task.payload_base64), (c) => c.charCodeAt(0));
	return null;
}

function inForm(data, form) {
	if (form === "hex")
		return Array.from({ length: Math.ceil(Math.min(data.length, 65536) / 16) }, (_, row) => {
			const line = [...data.slice(row * 16, row * 16 + 16)];
			return `${(row * 16).toString(16).padStart(6, "0")}  ${line.map((b) => b.toString(16).padStart(2, "0")).join(" ").padEnd(48)} ${line.map((b) => (b > 31 && b < 127 ? String.fromCharCode(b) : ".")).join("")}`;
		}).join("\n");
	const text = new TextDecoder().decode(data);
	if (form === "json")
		try {
			return JSON.stringify(JSON.parse(text), null, 2);
		} catch {
			return "This is no JSON.";
		}
	return text;
}

function payload(task) {
	const data = payloadOf(task);
	const choose = (form) => () => {
		shown.form = shown.id === task.id && shown.form === form ? null : form;
		shown.id = task.id;
		redraw();
	};
	const form = shown.id === task.id ? shown.form : null;
	return [h("h2", {}, `Payload${data ? `, ${bytes(data.length)}` : ""}`),
		h("div", { class: "actions" }, ["text", "json", "hex"].map((f) => h("button", { type: "button", "aria-pressed": String(form === f), onclick: choose(f) }, { text: "Text", json: "JSON", hex: "Hex" }[f]))),
		form && data ? h("pre", {}, inForm(data, form)) : null];
}

function requeueEdited(task) {
	// What is no text cannot be edited as one.
	if (typeof task.payload !== "string" || task.state !== "dead" || !may("operate"))
		return null;
	const send = async (e) => {
		e.preventDefault();
		try {
			const answer = await post(`/v1/tasks/${part(task.id)}/requeue?edit=1`, e.target.elements.payload.value);
			say("Requeued with the new payload.");
			location.hash = `#/task${query({ id: answer.as })}`;
		} catch (error) {
			say(`It was not requeued: ${error.message}`);
		}
	};
	return h("details", {}, h("summary", {}, "Requeue with another payload"),
		h("form", { onsubmit: send }, h("p", { class: "muted" }, "A new task with this payload takes its place, at the tail of its lane."),
			h("label", {}, "payload", h("textarea", { name: "payload", oninput: (e) => { e.target.dataset.typed = ""; } }, task.payload)),
			h("button", { type: "submit", class: "main" }, "Requeue it so")));
}

export function view(parameters) {
	const id = parameters.id || "";
	const found = wants(`task ${id}`, () => get(`/v1/tasks/${part(id)}`));
	if (found.error)
		return [h("p", {}, mono(id, 60)), h("p", { class: "bad" }, found.error.message)];
	if (!found.data)
		return empty("Asking the store.");
	const task = found.data;
	const path = (verb) => `/v1/tasks/${part(id)}/${verb}`;
	const isDead = task.state === "dead";
	const isOver = task.state === "done" || task.state === "merged";
	return [
		h("dl", { class: "facts" },
			h("dt", {}, "id"), h("dd", {}, mono(id, 60), copyable(id)),
			h("dt", {}, "handler"), h("dd", {}, task.handler ? handlerLink(task.handler) : "–"),
			h("dt", {}, "key"), h("dd", {}, task.key ? keyLink(task.key) : "none: it waits for no other task"),
			h("dt", {}, "lane"), h("dd", {}, task.lane || "–"),
			h("dt", {}, "attempts"), h("dd", {}, `${plural(task.attempts, "attempt")}, ${plural(task.crashes, "crash", "crashes")}, ${plural(task.interruptions, "interruption")}`),
			task.claimed_by ? [h("dt", {}, "claimed by"), h("dd", {}, task.claimed_by)] : null,
			task.parent ? [h("dt", {}, "follows"), h("dd", {}, taskLink(task.parent))] : null,
			Object.entries(task.headers || {}).map(([name, value]) => [h("dt", {}, `header ${name}`), h("dd", { class: "mono" }, String(value))])),
		timeline(task),
		h("div", { class: "actions" },
			isDead ? [action({ label: "Requeue it", path: path("requeue"), command: `quiver dead requeue ${word(id)}` }),
				action({ label: "Drop it", path: path("drop"), command: `quiver dead drop ${word(id)}`, isFinal: true, warns: "The task, its payload and its history are gone for good." })]
				: isOver ? null : action({ label: "Cancel it", path: path("cancel"), command: `quiver task cancel ${word(id)}`,
					warns: task.state === "running" ? "It is told to stop, and is dead unless it ends well before. It can be requeued." : "It will not run, and is dead. It can be requeued." })),
		payload(task),
		requeueEdited(task),
		task.result !== undefined ? [h("h2", {}, "Result"), h("pre", {}, String(task.result))] : null,
		h("p", { class: "muted" }, "The same from a terminal: ", command(`quiver task ${word(id)}`)),
	];
}
