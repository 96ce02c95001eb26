// tasks.js: tasks by state, handler, key, error and age; the filters stand in the address.

import { get, query } from "./api.js";
import { h } from "./dom.js";
import { age, number, plural } from "./format.js";
import { bulk, empty, handlerLink, keyLink, level, seen, since, table, taskLink, word } from "./parts.js";
import { state, wants } from "./state.js";

const STATES = ["all", "waiting", "running", "delayed", "parked", "held", "dead"];

const LEVELS = { running: "ok", done: "ok", waiting: "muted", delayed: "muted", parked: "warn", held: "warn", dead: "bad" };
export const stateOf = (task) => level(LEVELS[task.state] || "muted", task.state);

// [3, 8] → "3 of 8 (37 %)".
export function progressOf(progress) {
	const [done, total] = Array.isArray(progress) ? progress.map(Number) : [0, 0];
	return total ? `${number(done)} of ${number(total)} (${Math.floor(100 * done / total)} %) done` : done ? `${number(done)} done` : "";
}

export function why(task) {
	if (task.state === "running")
		return [task.worker ? `with worker ${task.worker}` : `on ${task.host || "?"}`, task.since_ms ? ` for ${age(Math.max(0, state.at - task.since_ms))}` : "", task.progress ? `, ${progressOf(task.progress)}` : ""].join("");
	if (task.state === "delayed")
		return `due in ${age(task.due_in_ms)}`;
	if (task.state === "dead")
		return [task.reason, String(task.history?.at(-1)?.text || "").split("\n")[0]].filter((text, i, all) => text && text !== all[i - 1]).join(": ");
	return task.waits_for ? `waits for ${task.waits_for}` : "";
}

export function tasksTable(id, tasks, now) {
	return table(id, [
		{ name: "task", show: (t) => taskLink(t.id) },
		{ name: "state", value: (t) => t.state, show: stateOf },
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
			? h("select", { name, onchange: (event) => event.target.form.requestSubmit() }, options.map((o) => [].concat(o)).map(([value, text = value]) =>
				h("option", { value: value === "all" ? "" : value, selected: (parameters[name] || "all") === value }, text)))
			: h("input", { name, value: parameters[name] || "", oninput: typed, autocomplete: "off" }))),
		h("button", { type: "submit" }, "Show"));
}

export const paged = (page, parameters, data, what) => [
	h("p", { class: "muted" }, `${plural(data.tasks.length, what)} shown; looked at ${number(data.looked)} of ${number(data.total)}.`,
		data.more ? [" ", h("a", { href: `#/${page}${query({ ...parameters, cursor: data.cursor })}` }, "The next page")] : "",
		parameters.cursor ? [" ", h("a", { href: `#/${page}${query({ ...parameters, cursor: "" })}` }, "The first page")] : ""),
];

// Actions on all that a list is about, also what stands on its further pages.
export function bulkOfList(page, parameters, data) {
	const isDead = page === "dead" || parameters.state === "dead";
	const filter = Object.fromEntries(["handler", "key", "host", "error", "older", "cause"].filter((name) => parameters[name] && (isDead || name !== "cause") && !(isDead && name === "host")).map((name) => [name, parameters[name]]));
	const options = Object.entries(filter).filter(([name]) => name !== "cause").map(([name, value]) => ` --${name} ${word(value)}`).join("");
	const chosen = seen(filter, data.time_ms);
	const isWhole = !data.more && !parameters.cursor;
	const what = isWhole ? plural(data.tasks.length, "task") : "all tasks like these, also on the other pages";
	const count = isWhole ? number(data.tasks.length) : "all like these";
	const shared = { total: isWhole ? data.tasks.length : data.total };
	if (!data.tasks.length)
		return null;
	if (isDead)
		return h("div", { class: "actions" },
			bulk({ ...shared, parameters: chosen, label: `Requeue ${count}`, id: `requeue list${options}`, path: "/v1/dead/requeue", done: "requeued", command: `quiver dead requeue${options || " --all"}`,
				warns: `${what} go to the tail of their lanes with fresh attempts. None that died after this list was read.` }),
			bulk({ ...shared, parameters: chosen, label: `Drop ${count}`, id: `drop list${options}`, path: "/v1/dead/drop", done: "dropped", isFinal: true, command: `quiver dead drop${options || " --all"}`,
				warns: `${what}: gone for good, with payloads and histories. None that died after this list was read.` }));
	return h("div", { class: "actions" }, bulk({ ...shared, parameters: { ...chosen, state: parameters.state }, label: `Cancel ${count}`, id: `cancel list${options}${parameters.state}`, path: "/v1/cancel", done: "cancelled",
		warns: `${what}: what waits will not run; what runs is told to stop. They are dead then, and can be requeued. None that was submitted after this list was read.` }));
}

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
			bulkOfList("tasks", parameters, found.data),
			paged("tasks", parameters, found.data, "task")] : found.error ? null : h("p", { class: "muted" }, "Asking the store."),
	];
}
