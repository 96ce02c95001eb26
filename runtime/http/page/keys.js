// keys.js: what each key waits for, why, and what is behind it.

import { get, part, query } from "./api.js";
import { h } from "./dom.js";
import { age, number, plural } from "./format.js";
import { action, command, copyable, empty, keyLink, level, keyPath, mono, since, table, taskLink, word } from "./parts.js";
import { filters, tasksTable, why } from "./tasks.js";
import { state, wants } from "./state.js";

export function title(parameters) {
	const { totals } = state.status;
	if (parameters.key) {
		const { data } = wants(`key ${parameters.key}`, () => get(`/v1/keys/${part(parameters.key)}`));
		const told = { held: "is held by a person", parked: "waits for its retry", waiting: "has tasks waiting", named: "waits" };
		return h("span", {}, "Key ", h("code", {}, parameters.key), data ? ` ${told[data.state] || "is free"}` : "");
	}
	if (!totals.held_keys && !totals.parked_keys)
		return "No key is held, none waits for a retry";
	return `${plural(totals.held_keys, "key")} held, ${number(totals.parked_keys)} ${totals.parked_keys === 1 ? "waits" : "wait"} for a retry`;
}

function detail(key) {
	const found = wants(`key ${key}`, () => get(`/v1/keys/${part(key)}`));
	const behind = wants(`behind ${key}`, () => get(`/v1/tasks${query({ key, limit: 50 })}`));
	if (found.error)
		return h("p", { class: "bad" }, found.error.message);
	if (!found.data)
		return empty("Asking the store.");
	const k = found.data;
	const isHeld = k.state === "held";
	const first = k.first || {};
	return [
		h("dl", { class: "facts" },
			h("dt", {}, "key"), h("dd", {}, mono(key, 80), copyable(key)),
			h("dt", {}, "state"), h("dd", {}, k.state || "free", k.reason ? `: ${k.reason}` : "", k.since_ms ? [", for ", since(k.since_ms, state.at)] : ""),
			k.head || first.id ? [h("dt", {}, "first task"), h("dd", {}, taskLink(first.id || k.head), ` ${first.state || ""}`, first.waits_for ? `: waits for ${first.waits_for}` : "",
				first.state === "running" ? `: ${why(first)}` : "")] : null,
			h("dt", {}, "tasks"), h("dd", {}, number((k.tasks || 0) + (k.claimed || 0))),
			k.due_in_ms ? [h("dt", {}, "next retry"), h("dd", {}, `in ${age(k.due_in_ms)}`)] : null,
			h("dt", {}, "shard"), h("dd", {}, number(k.shard))),
		h("div", { class: "actions" },
			isHeld ? action({ label: "Let it go on", path: keyPath(key, "unhold"), command: `quiver key unhold ${word(key)}` })
				: action({ label: "Hold the key", path: keyPath(key, "hold"), command: `quiver key hold ${word(key)}`, warns: "No further task of this key starts until somebody lets it go on. What runs goes on." }),
			k.state === "parked" ? action({ label: "Retry now", path: keyPath(key, "retry"), command: `quiver key retry ${word(key)}` }) : null,
			k.head ? action({ label: "Skip the first task", path: keyPath(key, "skip"), command: `quiver key skip ${word(key)}`,
				warns: "The first task becomes dead without having been done, and the one behind it starts. It can be requeued." }) : null),
		h("h2", {}, "Its tasks, in order"),
		behind.data ? (behind.data.tasks.length ? [tasksTable("behind", behind.data.tasks, behind.data.time_ms || state.at),
			h("p", { class: "muted" }, `${plural(behind.data.tasks.length, "task")} shown${behind.data.more ? "; there are more" : ""}.`)] : empty("None waits, runs or is dead."))
			: behind.error ? h("p", { class: "bad" }, behind.error.message) : null,
		h("p", { class: "muted" }, "The same from a terminal: ", command(`quiver key ${word(key)}`)),
	];
}

export function view(parameters) {
	if (parameters.key)
		return detail(parameters.key);
	const asked = query({ state: parameters.state, order: parameters.order, cursor: parameters.cursor, limit: 100 });
	const found = wants(`keys${asked}`, () => get(`/v1/keys${asked}`));
	return [
		filters("keys", parameters, [["state", "state", ["all", "waiting", "parked", "held"]], ["order", "order", [["all", "by shard"], ["tasks", "busiest first"]]], ["key", "one key"]]),
		found.error ? h("p", { class: "bad" }, found.error.message) : null,
		found.data ? [found.data.keys.length ? table("keys", [
			{ name: "key", value: (k) => k.key, show: (k) => keyLink(k.key) },
			{ name: "state", value: (k) => k.state, show: (k) => level(k.state === "held" || k.state === "parked" ? "warn" : "muted", k.state) },
			{ name: "tasks", class: "number", value: (k) => k.tasks, show: (k) => number(k.tasks) },
			{ name: "since", class: "number", value: (k) => k.since_ms, show: (k) => since(k.since_ms, state.at) },
			{ name: "first task", class: "less", show: (k) => (k.head ? taskLink(k.head) : "–") },
			{ name: "next retry", class: "number less", value: (k) => k.due_in_ms || 0, show: (k) => (k.due_in_ms ? `in ${age(k.due_in_ms)}` : "–") },
			{ name: "why", class: "text", show: (k) => k.reason || k.waits_for || "" },
		], found.data.keys, "Keys") : empty("Every key is free: none is parked, held, or has more tasks than its share."),
		h("p", { class: "muted" }, `${plural(found.data.keys.length, "key")} shown; looked at ${number(found.data.looked)} of ${number(found.data.total)}.`,
			found.data.more ? [" ", h("a", { href: `#/keys${query({ ...parameters, cursor: found.data.cursor })}` }, "The next page")] : "")] : null,
	];
}
