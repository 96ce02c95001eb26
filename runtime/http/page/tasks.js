// tasks.js: tasks by state, handler, key, error and age; the filters stand in the address.

import { get, query } from "./api.js";
import { h } from "./dom.js";
import { age, number, plural } from "./format.js";
import { empty, handlerLink, keyLink, since, table, taskLink } from "./parts.js";
import { state, wants } from "./state.js";

const STATES = ["all", "waiting", "running", "delayed", "parked", "held", "dead"];

export function why(task) {
	if (task.state === "running")
		return [`on ${task.host || "?"}`, task.running_ms ? ` for ${age(task.running_ms)}` : "", task.progress ? `, ${task.progress}` : ""].join("");
	if (task.state === "delayed")
		return `due in ${age(task.due_in_ms)}`;
	if (task.state === "dead")
		return [task.reason, task.history?.length ? `: ${task.history.at(-1).text}` : ""].join("");
	return task.waits_for ? `waits for ${task.waits_for}` : "";
}

export function tasksTable(id, tasks, now) {
	return table(id, [
		{ name: "task", show: (t) => taskLink(t.id) },
		{ name: "state", value: (t) => t.state, show: (t) => t.state },
		{ name: "handler", value: (t) => t.handler || "", show: (t) => (t.handler ? handlerLink(t.handler) : "–") },
		{ name: "key", class: "less", value: (t) => t.key || "", show: (t) => (t.key ? keyLink(t.key) : "–") },
		{ name: "age", class: "number", value: (t) => -(t.submitted_ms || now), show: (t) => since(t.submitted_ms, now) },
		{ name: "attempts", class: "number less", value: (t) => t.attempts, show: (t) => number(t.attempts) },
		{ name: "why", class: "text", show: why },
	], tasks, "Tasks");
}

// A form whose fields are the parameters of the address.
export function filters(page, parameters, fields) {
	const submit = (event) => {
		event.preventDefault();
		const given = Object.fromEntries(new FormData(event.target));
		for (const field of event.target.elements)
			delete field.dataset.typed;
		location.hash = `#/${page}${query(given)}`;
	};
	const typed = (event) => {
		event.target.dataset.typed = "";
	};
	return h("form", { class: "filters", onsubmit: submit, role: "search" },
		fields.map(([name, label, options]) => h("label", {}, label, options
			? h("select", { name, onchange: (event) => event.target.form.requestSubmit() }, options.map((o) => h("option", { value: o === "all" ? "" : o, selected: (parameters[name] || "all") === o }, o)))
			: h("input", { name, value: parameters[name] || "", oninput: typed, autocomplete: "off" }))),
		h("button", { type: "submit" }, "Show"));
}

export const paged = (page, parameters, data, what) => [
	h("p", { class: "muted" }, `${plural(data.tasks.length, what)} shown; looked at ${number(data.looked)} of ${number(data.total)}.`,
		data.more ? [" ", h("a", { href: `#/${page}${query({ ...parameters, cursor: data.cursor })}` }, "The next page")] : "",
		parameters.cursor ? [" ", h("a", { href: `#/${page}${query({ ...parameters, cursor: "" })}` }, "The first page")] : ""),
];

export function title(parameters) {
	const { totals } = state.status;
	const counts = { waiting: totals.waiting, running: totals.running, delayed: totals.delayed, dead: totals.dead };
	const shown = parameters.state || "all";
	if (parameters.handler || parameters.key || parameters.error)
		return `Tasks${parameters.state ? ` that are ${parameters.state}` : ""}${parameters.handler ? ` of ${parameters.handler}` : ""}`;
	if (shown in counts)
		return `${plural(counts[shown], "task")} ${shown === "waiting" ? (counts[shown] === 1 ? "waits" : "wait") : shown === "running" ? (counts[shown] === 1 ? "runs" : "run") : `${counts[shown] === 1 ? "is" : "are"} ${shown}`}`;
	return `${number(totals.waiting)} ${totals.waiting === 1 ? "waits" : "wait"}, ${number(totals.running)} ${totals.running === 1 ? "runs" : "run"}, ${number(totals.delayed)} delayed, ${number(totals.dead)} dead`;
}

export function view(parameters) {
	const asked = query({ state: parameters.state, handler: parameters.handler, key: parameters.key, host: parameters.host, error: parameters.error, older: parameters.older, cursor: parameters.cursor, limit: 100 });
	const found = wants(`tasks${asked}`, () => get(`/v1/tasks${asked}`));
	const findId = (event) => {
		event.preventDefault();
		const id = new FormData(event.target).get("id").trim();
		if (id)
			location.hash = `#/task${query({ id })}`;
	};
	return [
		filters("tasks", parameters, [["state", "state", STATES], ["handler", "handler"], ["key", "key"], ["error", "error has"], ["older", "older than (5m)"]]),
		h("form", { class: "filters", onsubmit: findId }, h("label", {}, "one task by its id", h("input", { name: "id", autocomplete: "off" })), h("button", { type: "submit" }, "Find")),
		found.error ? h("p", { class: "bad" }, found.error.message) : null,
		found.data ? [
			found.data.tasks.length ? tasksTable("tasks", found.data.tasks, found.data.time_ms || state.at)
				: empty("No task is like that.", state.status.totals.submitted ? null : "quiver submit echo --wait world"),
			paged("tasks", parameters, found.data, "task")] : h("p", { class: "muted" }, "Asking the store."),
	];
}
