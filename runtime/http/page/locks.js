// locks.js: who holds which lock, who leads, and who waits.

import { get } from "./api.js";
import { h } from "./dom.js";
import { number, plural } from "./format.js";
import { command, empty, since, table } from "./parts.js";
import { state, wants } from "./state.js";

const load = () => get("/v1/locks");

export function title() {
	const { data } = wants("locks", load);
	const held = (data?.locks || []).length;
	return data ? (held ? `${plural(held, "lock or election", "locks and elections")} ${held === 1 ? "is" : "are"} held` : "No lock is held") : "Locks";
}

function holder(lock) {
	const by = lock.holder;
	return by ? [`pid ${by.pid} on ${by.machine}`, by.command ? [", ", h("code", {}, by.command)] : ""] : "–";
}

export function view() {
	const found = wants("locks", load);
	if (found.error)
		return h("p", { class: "bad" }, found.error.message);
	if (!found.data)
		return empty("Asking the coordination.");
	if (!found.data.locks.length)
		return empty("A lock lets one process of the fleet at a time do something. Try one:", "quiver lock nightly -- sleep 60");
	return [table("locks", [
		{ name: "lock", value: (l) => l.name, show: (l) => h("code", {}, l.name) },
		{ name: "kind", class: "less", value: (l) => l.kind || "", show: (l) => l.kind || "lock" },
		{ name: "holder", class: "text", show: holder },
		{ name: "since", class: "number", show: (l) => since(l.holder?.since_ms, state.at) },
		{ name: "waiting", class: "number", value: (l) => l.waiting || 0, show: (l) => number(l.waiting) },
	], found.data.locks, "Locks"), h("p", { class: "muted" }, "Hold one: ", command("quiver lock NAME -- COMMAND"))];
}
