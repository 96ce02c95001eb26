// dead.js: tasks that were given up, by handler and error; one button per group.

import { get, query } from "./api.js";
import { h } from "./dom.js";
import { number, plural } from "./format.js";
import { action, empty, handlerLink, table, word } from "./parts.js";
import { filters, paged, tasksTable } from "./tasks.js";
import { state, wants } from "./state.js";

export function title(parameters) {
	const dead = state.status.totals.dead;
	if (parameters.handler || parameters.error)
		return `Dead tasks${parameters.handler ? ` of ${parameters.handler}` : ""}`;
	return dead ? `${plural(dead, "task")} ${dead === 1 ? "is" : "are"} dead` : "No task is dead";
}

// What a list showed is what is touched: nothing that died after it was read.
function bulk(group, before) {
	const asked = query({ handler: group.handler, error: group.error, reason: group.reason, before });
	const words = `--handler ${word(group.handler)}${group.error ? ` --error ${word(group.error)}` : ""}`;
	const told = (answer) => {
		const acted = answer.requeued ?? answer.dropped ?? 0;
		return `${plural(acted, "task")} ${answer.requeued === undefined ? "dropped" : "requeued"}${answer.more ? "; there are more, press again" : ""}.`;
	};
	return h("span", { class: "actions" },
		action({ label: `Requeue ${number(group.tasks)}`, id: `requeue ${words}`, path: `/v1/dead/requeue${asked}`, command: `quiver dead requeue ${words}`, done: told,
			warns: `${plural(group.tasks, "task")} of ${group.handler} that died with this error go to the tail of their lanes with fresh attempts. None that died after this list was read.` }),
		action({ label: `Drop ${number(group.tasks)}`, id: `drop ${words}`, path: `/v1/dead/drop${asked}`, command: `quiver dead drop ${words}`, done: told,
			warns: `${plural(group.tasks, "task")} of ${group.handler} with this error are gone for good, with their payloads and histories.` }));
}

export function view(parameters) {
	if (parameters.handler || parameters.error || parameters.all) {
		const asked = query({ handler: parameters.handler, error: parameters.error, cursor: parameters.cursor, limit: 100 });
		const found = wants(`dead${asked}`, () => get(`/v1/dead${asked}`));
		return [
			filters("dead", parameters, [["handler", "handler"], ["error", "error has"]]),
			found.error ? h("p", { class: "bad" }, found.error.message) : null,
			found.data ? [found.data.tasks.length ? tasksTable("dead", found.data.tasks, found.data.time_ms || state.at) : empty("No dead task is like that."),
				paged("dead", parameters, found.data, "dead task")] : null,
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
			{ name: "tasks", class: "number", value: (g) => g.tasks, show: (g) => h("a", { href: `#/dead${query({ handler: g.handler, error: g.error, all: 1 })}` }, number(g.tasks)) },
			{ name: "handler", value: (g) => g.handler, show: (g) => (g.handler ? handlerLink(g.handler) : "–") },
			{ name: "first line of the error", class: "text", value: (g) => g.error, show: (g) => g.error || g.reason || "–" },
			{ name: "reason", class: "less", value: (g) => g.reason, show: (g) => g.reason || "–" },
			{ name: "", show: (g) => bulk(g, found.data.time_ms) },
		], groups, "Dead tasks by handler and error") : empty("A task is dead when it has used up its attempts, or was rejected, skipped or cancelled. It is kept here until somebody requeues or drops it."),
		groups.length ? h("p", { class: "muted" }, `${plural(groups.length, "group")}. `, h("a", { href: "#/dead?all=1" }, "All of them, one by one")) : null,
	];
}
