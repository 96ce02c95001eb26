// handlers.js: who serves what, how well, and which version.

import { part, query } from "./api.js";
import { h } from "./dom.js";
import { age, number, plural, rate } from "./format.js";
import { action, command, empty, handlerLink, level, mono, since, table, used, word } from "./parts.js";
import { state } from "./state.js";

const SHAPES = { open: ["ok", "●", "serves"], starting: ["muted", "◌", "starts"], paused: ["warn", "❚❚", "paused"], unavailable: ["bad", "▲", "unavailable"],
	refused: ["bad", "▲", "refused"], quarantined: ["bad", "▲", "quarantined"], unserved: ["bad", "○", "no host serves it"], removed: ["muted", "○", "removed"] };

export function stateOf(handler) {
	const [level, shape, text] = SHAPES[handler.state] || ["muted", "○", handler.state];
	return h("span", { class: level }, h("span", { "aria-hidden": "true" }, `${shape}\u00a0`), text);
}

const failures = (handler) => handler.retried + handler.rejected + handler.crashed + handler.timed_out;

const durations = (r) => (r.run_p99_ms ? `${age(r.run_p50_ms)} / ${age(r.run_p99_ms)}` : "–");

export function handlersTable(handlers) {
	if (!handlers.length)
		return empty("No handler is named in the settings of any host. Add one:", "quiver handler add NAME PLUGIN.so");
	return table("handlers", [
		{ name: "handler", value: (r) => r.name, show: (r) => handlerLink(r.name) },
		{ name: "state", value: (r) => r.state, show: stateOf },
		{ name: "waiting", class: "number", value: (r) => r.waiting, show: (r) => `${r.estimated ? "≈ " : ""}${number(r.waiting)}` },
		{ name: "oldest", class: "number", value: (r) => r.oldest_ms, show: (r) => (r.waiting ? age(r.oldest_ms) : "–") },
		{ name: "running", class: "number", value: (r) => r.running, show: (r) => used(r.running, r.seats) },
		{ name: "done/s", class: "number", value: (r) => r.done_rate, show: (r) => rate(r.done_rate) },
		{ name: "p50 / p99", class: "number", value: (r) => r.run_p99_ms, show: durations },
		{ name: "failed", class: "number less", value: failures, show: (r) => number(failures(r)) },
		{ name: "crashed", class: "number less", value: (r) => r.crashed, show: (r) => number(r.crashed) },
		{ name: "dead", class: "number", value: (r) => r.dead, show: (r) => number(r.dead) },
		{ name: "version", class: "less", value: (r) => r.version, show: (r) => [r.version || "–", r.versions?.some(isRecentFailure) ? h("span", { class: "bad" }, " ▲ rolled back") : null] },
	], handlers, "Handlers");
}

// --- what became of its versions ---

const OUTCOMES = { good: "ok", serving: "ok", unproven: "warn", refused: "bad", "rolled back": "bad", "held back": "warn" };
const isRecentFailure = (v) => (v.outcome === "rolled back" || v.outcome === "refused") && state.at - v.at_ms < 3600000;

function versions(r) {
	if (!r.versions)
		return h("p", { class: "muted" }, "Every host serves the version it started with: nothing was reloaded since.");
	const rows = [...r.versions].sort((a, b) => b.at_ms - a.at_ms);
	return table("versions", [
		{ name: "when", class: "number", value: (v) => v.at_ms, show: (v) => [since(v.at_ms, state.at), " ago"] },
		{ name: "host", value: (v) => v.host, show: (v) => v.host },
		{ name: "generation", class: "number", value: (v) => v.generation, show: (v) => (v.generation ? number(v.generation) : "–") },
		{ name: "version", value: (v) => v.version || "", show: (v) => v.version || "–" },
		{ name: "what became of it", value: (v) => v.outcome || "", show: (v) => level(OUTCOMES[v.outcome] || "muted", v.outcome || "–") },
		{ name: "by", class: "less", value: (v) => v.by || "", show: (v) => v.by || "–" },
		{ name: "why", class: "text", show: (v) => v.text || "" },
	], rows, `Versions of ${r.name}`);
}

export function title(parameters) {
	const handlers = state.status.handlers;
	if (parameters.name) {
		const one = handlers.find((r) => r.name === parameters.name);
		return one ? h("span", {}, one.name, " ", stateOf(one)) : `Nothing is known of ${parameters.name}`;
	}
	const serving = handlers.filter((r) => r.state === "open" || r.state === "starting").length;
	const down = handlers.filter((r) => SHAPES[r.state]?.[0] === "bad").length;
	const paused = handlers.filter((r) => r.state === "paused").length;
	return [`${plural(serving, "handler")} ${serving === 1 ? "serves" : "serve"}`, paused ? `${number(paused)} paused` : null, down ? `${number(down)} down` : null].filter(Boolean).join(", ");
}

function detail(r) {
	const path = (verb) => `/v1/handlers/${part(r.name)}/${verb}`;
	const isPaused = Object.hasOwn(state.status.totals.paused, r.name) || Object.hasOwn(state.status.totals.paused, "");
	const groups = (state.status.dead || []).filter((g) => g.handler === r.name);
	return [
		h("dl", { class: "facts" },
			r.unavailable ? [h("dt", {}, "it says"), h("dd", { class: "bad" }, r.unavailable, r.unavailable_ms ? `, for ${age(r.unavailable_ms)}` : "")] : null,
			r.refused ? [h("dt", {}, "refused"), h("dd", { class: "bad" }, r.refused)] : null,
			h("dt", {}, "plugin"), h("dd", {}, h("code", {}, r.plugin || "–"), r.version ? ` version ${r.version}` : ""),
			h("dt", {}, "generation"), h("dd", {}, number(r.generation), r.hash ? [", file ", mono(r.hash, 40)] : ""),
			h("dt", {}, "running"), h("dd", {}, h("a", { href: `#/tasks${query({ state: "running", handler: r.name })}` }, plural(r.running, "task")), r.seats ? ` on ${plural(r.seats, "seat")}` : ""),
			h("dt", {}, "waiting"), h("dd", {}, h("a", { href: `#/tasks${query({ state: "waiting", handler: r.name })}` }, `${r.estimated ? "about " : ""}${plural(r.waiting, "task")}`),
				r.waiting ? `, the oldest for ${age(r.oldest_ms)}` : ""),
			h("dt", {}, "done"), h("dd", {}, `${number(r.done)}, now ${rate(r.done_rate)} per second`),
			h("dt", {}, "takes"), h("dd", {}, r.run_p99_ms ? `${age(r.run_p50_ms)} for half of the tasks, ${age(r.run_p99_ms)} for 99 of 100; in the last minutes, on the slowest host` : "nothing has ended in the last minutes"),
			h("dt", {}, "failed"), h("dd", {}, `${rate(r.failed_rate)} per second; in all ${number(r.retried)} retried, ${number(r.rejected)} rejected, ${number(r.crashed)} crashed, ${number(r.timed_out)} timed out`),
			h("dt", {}, "dead"), h("dd", {}, h("a", { href: `#/dead${query({ handler: r.name })}` }, plural(r.dead, "task")))),
		h("div", { class: "actions" },
			isPaused
				? action({ label: `Resume ${r.name}`, path: path("resume"), command: `quiver resume ${word(r.name)}` })
				: action({ label: `Pause ${r.name}`, path: path("pause"), command: `quiver pause ${word(r.name)}`,
					warns: `No task of ${r.name} starts until it is resumed. ${plural(r.running, "task")} that run go on; what waits keeps its place.` }),
			action({ label: `Reload ${state.me.host}`, path: "/v1/reload", command: "quiver reload",
				warns: `${state.me.host}, which answers this page, reads its settings and plugins anew. What is broken in the new is refused, and the old keeps running. The other hosts keep theirs.` })),
		h("h2", {}, "Versions"), versions(r),
		h("p", { class: "muted" }, "A new version: ", command(`cp ${word(r.plugin || "PLUGIN.so")} PLUGINS/ && quiver reload --wait`), " On all hosts, one after the other: ", command("quiver reload --all")),
		groups.length ? [h("h2", {}, "Dead by error"), h("ul", {}, groups.map((g) => h("li", {}, h("a", { href: `#/dead${query({ handler: g.handler, error: g.error })}` }, plural(g.tasks, "task")), `: ${g.error || g.reason}`)))] : null,
	];
}

export function view(parameters) {
	if (parameters.name) {
		const one = state.status.handlers.find((r) => r.name === parameters.name);
		return one ? detail(one) : empty("No host names it, and no task that was looked at is for it.");
	}
	const paused = Object.hasOwn(state.status.totals.paused, "");
	return [
		handlersTable(state.status.handlers),
		h("div", { class: "actions" }, paused
			? action({ label: "Resume all handlers", path: "/v1/resume", command: "quiver resume" })
			: action({ label: "Pause all handlers", path: "/v1/pause", command: "quiver pause",
				warns: "No task of any handler starts until they are resumed. What runs goes on; what waits keeps its place." })),
	];
}
