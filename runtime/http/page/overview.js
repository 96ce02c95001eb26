// overview.js: is it fine, what is wrong, since when, for whom, and what to do.

import { h } from "./dom.js";
import { age, number, plural, rate } from "./format.js";
import { action, command } from "./parts.js";
import { part, query } from "./api.js";
import { handlersTable } from "./handlers.js";
import { plots } from "./history.js";
import { spark } from "./plot.js";
import { state } from "./state.js";

// Where a problem is looked at, and the button that mends it.
function remedies(problem) {
	const handler = problem.handler;
	const link = (href, text) => h("a", { class: "button", href }, text);
	const pause = () => action({ label: `Pause ${handler}`, path: `/v1/handlers/${part(handler)}/pause`, command: problem.command,
		warns: `No task of ${handler} starts until it is resumed. What runs goes on; what waits keeps its place.` });
	switch (problem.kind) {
	case "paused":
		return [link(`#/handlers${query({ name: handler })}`, "Handler"),
			action({ label: `Resume ${handler}`, path: `/v1/handlers/${part(handler)}/resume`, command: problem.command })];
	case "unavailable":
		return [link(`#/handlers${query({ name: handler })}`, "Handler"), pause()];
	case "backlog": case "unserved":
		return [link(`#/tasks${query({ handler, state: "waiting" })}`, "Its tasks")];
	case "quarantined": case "refused": case "versions":
		return [link(`#/handlers${query({ name: handler })}`, "Handler")];
	case "held": case "parked":
		return [link(`#/keys${query({ state: problem.kind })}`, "Keys")];
	case "dead":
		return [link("#/dead", "Dead tasks")];
	case "shards":
		return [link("#/shards", "Shards")];
	case "hosts":
		return [link("#/members", "Members")];
	default:
		return [];
	}
}

export function problemList(problems) {
	if (!problems.length)
		return h("ul", { class: "problems" }, h("li", { class: "well" }, h("span", { class: "what" }, "Nothing is wrong.")));
	return h("ul", { class: "problems" }, problems.map((p) => h("li", { class: p.level, "data-key": p.kind + (p.handler || "") },
		h("span", { class: "what" }, h("span", { class: p.level, "aria-hidden": "true" }, p.level === "bad" ? "▲ " : "● "),
			h("strong", { class: p.level }, p.level === "bad" ? "Wrong: " : "Look: "), p.text),
		h("span", { class: "do" }, remedies(p), command(p.command)))));
}

function tile(name, value, samples, href) {
	return h("a", { class: "tile", href }, h("div", { class: "name" }, name), h("div", { class: "value" }, value), spark(samples));
}

export function title() {
	const problems = state.status.problems || [];
	const bad = problems.filter((p) => p.level === "bad").length;
	if (bad)
		return bad === 1 ? "One thing is wrong" : `${number(bad)} things are wrong`;
	return problems.length ? `Work goes on; ${plural(problems.length, "thing")} to look at` : "All is well";
}

export function view() {
	const { status, samples } = state;
	const { totals, rates } = status;
	const of = (name) => samples.map((s) => s[name]);
	const isNew = !totals.submitted && !totals.waiting && !totals.done;
	return [
		problemList(status.problems || []),
		isNew ? h("p", {}, "No task was ever submitted. Try one: ", command("quiver submit echo --wait world")) : null,
		h("div", { class: "tiles" },
			tile("Waiting", number(totals.waiting), of("waiting"), "#/tasks?state=waiting"),
			tile("Running", number(totals.running), of("running"), "#/tasks?state=running"),
			tile("Done per second", rate(rates.done), of("done"), "#/handlers"),
			tile("Oldest waiting", totals.waiting ? age(totals.oldest_ms) : "–", of("oldest_ms"), "#/tasks?state=waiting"),
			tile("Failed per second", rate(rates.failed), of("failed"), "#/dead"),
			tile("Dead", number(totals.dead), of("dead"), "#/dead")),
		plots(),
		h("h2", {}, "Handlers"),
		handlersTable(status.handlers),
		h("p", { class: "muted" }, `Since the app began: ${number(totals.submitted)} submitted, ${number(totals.done)} done, ${number(totals.dropped)} dropped. `,
			totals.delayed ? [h("a", { href: "#/tasks?state=delayed" }, `${plural(totals.delayed, "task")} delayed`), " until later. "] : "",
			`Durability: ${totals.durability}.`),
	];
}

