// task.js: one task from its submission to its outcome.

import { get, part, post, query } from "./api.js";
import { h, say } from "./dom.js";
import { age, bytes, clock, number, time } from "./format.js";
import { action, command, copyable, empty, handlerLink, keyLink, may, mono, taskLink, word } from "./parts.js";
import { why } from "./tasks.js";
import { redraw, wants } from "./state.js";

const LEVELS = { attempt: "warn", crash: "bad", timeout: "bad", interruption: "wait", later: "wait", requeued: "ok", done: "ok", started: "ok" };

export function title(parameters) {
	const { data } = wants(`task ${parameters.id}`, () => get(`/v1/tasks/${part(parameters.id)}`));
	if (!data)
		return "Task";
	const attempts = data.attempts ? `, after ${number(data.attempts)} attempt${data.attempts === 1 ? "" : "s"}` : "";
	return `A task of ${data.handler || "?"}: ${data.state}${attempts}`;
}

function event(level, at, before, content) {
	return h("li", { class: level }, h("span", { class: "at", title: at ? time(at) : null }, at ? clock(at) : "now",
		before && at ? h("div", { class: "muted" }, `+${age(Math.max(0, at - before))}`) : null), h("div", { class: "event" }, content));
}

function timeline(task) {
	const list = [];
	let before = task.submitted_ms;
	if (before)
		list.push(event("ok", before, 0, "submitted"));
	for (const e of task.history || []) {
		const where = [e.host ? `on ${e.host}` : null, e.pid ? `pid ${e.pid}` : null, e.generation ? `generation ${e.generation}` : null, e.hash ? `file ${e.hash}` : null].filter(Boolean).join(", ");
		const lines = String(e.text || "").split("\n");
		list.push(event(LEVELS[e.kind] || "warn", e.at_ms, before, [h("strong", {}, e.kind), lines[0] ? `: ${lines[0]}` : "", where ? h("div", { class: "muted" }, where) : null,
			lines.length > 1 ? h("details", {}, h("summary", {}, "All it said"), h("pre", {}, lines.join("\n"))) : null]));
		before = e.at_ms;
	}
	list.push(event(task.state === "dead" ? "bad" : task.state === "running" ? "ok" : "wait", task.state === "dead" ? task.at_ms : 0, before,
		[h("strong", {}, task.state), `: ${why(task) || "–"}`, task.behind ? [" ", taskLink(task.behind)] : null]));
	return h("ol", { class: "timeline" }, list);
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
			h("dt", {}, "spent"), h("dd", {}, `${number(task.attempts)} attempts, ${number(task.crashes)} crashes, ${number(task.interruptions)} interruptions`),
			task.claimed_by ? [h("dt", {}, "claimed by"), h("dd", {}, task.claimed_by)] : null,
			task.parent ? [h("dt", {}, "follows"), h("dd", {}, taskLink(task.parent))] : null,
			Object.entries(task.headers || {}).map(([name, value]) => [h("dt", {}, `header ${name}`), h("dd", { class: "mono" }, String(value))])),
		timeline(task),
		h("div", { class: "actions" },
			isDead ? [action({ label: "Requeue it", path: path("requeue"), command: `quiver dead requeue ${word(id)}` }),
				action({ label: "Drop it", path: path("drop"), command: `quiver dead drop ${word(id)}`, warns: "The task, its payload and its history are gone for good." })]
				: isOver ? null : action({ label: "Cancel it", path: path("cancel"), command: `quiver task cancel ${word(id)}`,
					warns: task.state === "running" ? "It is told to stop, and is dead unless it ends well before. It can be requeued." : "It will not run, and is dead. It can be requeued." })),
		payload(task),
		requeueEdited(task),
		task.result !== undefined ? [h("h2", {}, "Result"), h("pre", {}, String(task.result))] : null,
		h("p", { class: "muted" }, "The same from a terminal: ", command(`quiver task ${word(id)}`)),
	];
}
