// dead.js: tasks that were given up, by handler and error; one button per group.

import { get, query } from "./api.js";
import { h } from "./dom.js";
import { number, plural } from "./format.js";
import { bulk, empty, handlerLink, table, word } from "./parts.js";
import { bulkOfList, filters, paged, tasksTable } from "./tasks.js";
import { state, wants } from "./state.js";

export function title(parameters) {
	const dead = state.status.totals.dead;
	if (parameters.handler || parameters.error || parameters.cause)
		return `Dead tasks${parameters.handler ? ` of ${parameters.handler}` : ""}${parameters.cause ? `: ${parameters.cause}` : ""}`;
	return dead ? `${plural(dead, "task")} ${dead === 1 ? "is" : "are"} dead` : "No task is dead";
}

// What a list showed is what is touched: nothing that died after it was read.
function actions(group, before) {
	const parameters = { handler: group.handler || "unknown", cause: group.error, reason: group.reason, before };
	const words = `--handler ${word(group.handler)}${group.reason ? ` --reason ${word(group.reason)}` : ""}${group.error ? ` --error ${word(group.error)}` : ""}`;
	const shared = { parameters, total: group.tasks };
	// What found no place in a group of its own has no name by which it could be chosen.
	if (!group.handler)
		return null;
	return h("span", { class: "actions" },
		bulk({ ...shared, label: `Requeue ${number(group.tasks)}`, id: `requeue ${words}`, path: "/v1/dead/requeue", done: "requeued", command: `quiver dead requeue ${words}`,
			warns: `${plural(group.tasks, "task")} of ${group.handler} that died with this error ${group.tasks === 1 ? "goes to the tail of its lane" : "go to the tail of their lanes"} with fresh attempts. None that died after this list was read.` }),
		bulk({ ...shared, label: `Drop ${number(group.tasks)}`, id: `drop ${words}`, path: "/v1/dead/drop", done: "dropped", isFinal: true, command: `quiver dead drop ${words}`,
			warns: `${plural(group.tasks, "task")} of ${group.handler} with this error ${group.tasks === 1 ? "is" : "are"} gone for good, with payload and history.` }));
}

export function view(parameters) {
	if (parameters.handler || parameters.error || parameters.older || parameters.cause !== undefined || parameters.all) {
		const asked = query({ handler: parameters.handler, error: parameters.error, older: parameters.older, cursor: parameters.cursor, limit: 100 }) + (parameters.cause === undefined ? "" : `&cause=${encodeURIComponent(parameters.cause)}`);
		const found = wants(`dead${asked}`, () => get(`/v1/dead${asked}`));
		return [
			filters("dead", parameters, [["handler", "handler"], ["error", "error has"], ["older", "died longer ago than (5m)"]]),
			found.error ? h("p", { class: "bad" }, found.error.message) : null,
			found.data ? [found.data.tasks.length ? tasksTable("dead", found.data.tasks, found.data.time_ms || state.at) : empty("No dead task is like that."),
				bulkOfList("dead", parameters, found.data), paged("dead", parameters, found.data, "dead task")] : null,
		];
	}
	const found = wants("dead groups", () => get("/v1/dead"));
	if (found.error)
		return h("p", { class: "bad" }, found.error.message);
	if (!found.data)
		return empty("Asking the store.");
	const groups = [...found.data.groups].sort((a, b) => b.tasks - a.tasks);
	return [
		groups.length ? table("groups", [
			{ name: "tasks", class: "number", value: (g) => g.tasks, show: (g) => h("a", { href: `#/dead${query({ handler: g.handler, all: 1 })}${g.handler ? `&cause=${encodeURIComponent(g.error)}` : ""}` }, number(g.tasks)) },
			{ name: "handler", value: (g) => g.handler, show: (g) => (g.handler ? handlerLink(g.handler) : "several") },
			{ name: "first line of the error", class: "text", value: (g) => g.error, show: (g) => g.error || g.reason || "–" },
			{ name: "reason", class: "less", value: (g) => g.reason, show: (g) => g.reason || "–" },
			{ name: "", show: (g) => actions(g, found.data.time_ms) },
		], groups, "Dead tasks by handler and error") : empty("A task is dead when it has used up its attempts, or was rejected, skipped or cancelled. It is kept here until somebody requeues or drops it."),
		groups.length ? h("p", { class: "muted" }, `${plural(groups.length, "group")} of ${plural(found.data.total, "task")}, by handler, reason and the first line of the error. `, h("a", { href: "#/dead?all=1" }, "All of them, one by one")) : null,
	];
}
