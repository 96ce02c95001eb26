// schedules.js: what is submitted at which times, when next, and what became of the last times.

import { get, part, query } from "./api.js";
import { h } from "./dom.js";
import { age, number, plural, time } from "./format.js";
import { action, command, empty, handlerLink, level, since, table, word } from "./parts.js";
import { state, wants } from "./state.js";

const LEVELS = { active: "ok", paused: "warn", deleted: "muted" };

const load = (cursor) => wants(`schedules ${cursor || ""}`, () => get(`/v1/schedules${query({ limit: 100, cursor })}`));
const loadOne = (name) => wants(`schedule ${name}`, () => get(`/v1/schedules/${part(name)}?times=10`));

// What a definition says about its times, in one line.  One that cannot be read is no object.
function when(schedule) {
	const d = schedule.definition;
	if (!d || typeof d !== "object")
		return schedule.error || "its definition cannot be read";
	if (d.cron)
		return [h("code", {}, d.cron), ` in ${d.zone || "UTC"}`];
	return d.every_ms ? `every ${age(d.every_ms)}` : d.at_ms ? `once, at ${utc(d.at_ms)}` : "–";
}

const utc = (ms) => new Date(ms).toISOString().replace("T", " ").replace(".000Z", "Z");
const until = (ms) => (ms ? h("time", { datetime: new Date(ms).toISOString(), title: time(ms) }, ms > state.at ? `in ${age(ms - state.at)}` : "now") : "–");

export function title(parameters) {
	if (parameters.name) {
		const { data } = loadOne(parameters.name);
		return h("span", {}, "Schedule ", h("code", {}, parameters.name), data ? ` is ${data.state}` : "");
	}
	const { data } = load(parameters.cursor);
	if (!data)
		return "Schedules";
	const paused = data.schedules.filter((s) => s.state === "paused").length;
	return data.schedules.length ? `${plural(data.schedules.length, "schedule")}${data.more ? " and more" : ""}${paused ? `, ${number(paused)} paused` : ""}` : "Nothing is scheduled";
}

function actions(s) {
	const path = (verb) => `/v1/schedules/${part(s.name)}/${verb}`;
	const name = word(s.name);
	return h("div", { class: "actions" },
		s.state === "paused"
			? action({ label: `Resume ${s.name}`, path: path("resume"), command: `quiver schedule resume ${name}` })
			: action({ label: `Pause ${s.name}`, path: path("pause"), command: `quiver schedule pause ${name}`, warns: "It fires no more until it is resumed. Times that pass meanwhile are not made up for." }),
		action({ label: "Run it now", path: path("run"), command: `quiver schedule run ${name}`, warns: "Its task is submitted once, now, besides its times.",
			done: (answer) => `Submitted${answer?.id ? ` as ${answer.id}` : ""}.` }));
}

function detail(name) {
	const found = loadOne(name);
	if (found.error)
		return h("p", { class: "bad" }, found.error.message);
	if (!found.data)
		return empty("Asking the store.");
	const s = found.data, d = typeof s.definition === "object" && s.definition ? s.definition : {};
	const fact = (label, value) => (value === undefined || value === null || value === "" ? null : [h("dt", {}, label), h("dd", {}, value)]);
	return [
		s.error ? h("p", { class: "bad" }, s.error) : null,
		s.doubt ? h("p", { class: "warn" }, s.doubt) : null,
		h("dl", { class: "facts" },
			fact("when", when(s)), fact("handler", d.handler ? handlerLink(d.handler) : null), fact("key", d.key), fact("lane", d.lane), fact("overlap", d.overlap), fact("catch-up", d.catchup),
			fact("from", d.from === "file" ? "runtime.cfg" : d.from), fact("fired", plural(s.fired, "time")), fact("skipped", plural(s.skipped, "time")),
			fact("last", s.last_ms ? [since(s.last_ms, state.at), " ago"] : "never"), fact("ends", d.end_ms ? utc(d.end_ms) : null), fact("at most", d.runs_max ? plural(d.runs_max, "time") : null)),
		actions(s),
		h("h2", {}, s.times?.length ? `The next ${plural(s.times.length, "time")}` : "No more times"),
		s.times?.length ? table("times", [
			{ name: "when", class: "number", show: (t) => until(t.ms) },
			{ name: d.zone || "UTC", show: (t) => t.local || "–" },
			{ name: "UTC", show: (t) => utc(t.ms) },
		], s.times.map((ms, i) => ({ ms, local: s.local_times?.[i] })), "Next times") : null,
		typeof d.payload === "string" && d.payload ? h("details", {}, h("summary", {}, "Payload"), h("pre", {}, d.payload)) : null,
		h("p", { class: "muted" }, "Times that passed without it: ", command(`quiver schedule backfill ${word(s.name)} --from FROM --to TO`)),
	];
}

export function view(parameters) {
	if (parameters.name)
		return detail(parameters.name);
	const found = load(parameters.cursor);
	if (found.error)
		return h("p", { class: "bad" }, found.error.message);
	if (!found.data)
		return empty("Asking the store.");
	const { schedules, unreadable, more, cursor } = found.data;
	return [
		schedules.length ? table("schedules", [
			{ name: "schedule", value: (s) => s.name, show: (s) => h("a", { href: `#/schedules${query({ name: s.name })}` }, s.name) },
			{ name: "state", value: (s) => s.state, show: (s) => level(LEVELS[s.state] || "muted", s.state) },
			{ name: "when", class: "text", show: when },
			{ name: "handler", class: "less", value: (s) => s.definition?.handler || "", show: (s) => (s.definition?.handler ? handlerLink(s.definition.handler) : "–") },
			{ name: "next", class: "number", value: (s) => s.next_ms || Infinity, show: (s) => (s.state === "active" ? until(s.next_ms) : "–") },
			{ name: "last", class: "number less", value: (s) => -(s.last_ms || 0), show: (s) => (s.last_ms ? [since(s.last_ms, state.at), " ago"] : "never") },
			{ name: "fired", class: "number", value: (s) => s.fired, show: (s) => number(s.fired) },
			{ name: "skipped", class: "number less", value: (s) => s.skipped, show: (s) => number(s.skipped) },
		], schedules, "Schedules") : empty("A schedule submits a task at given times, each time once, whichever host is there. Make one:",
			"quiver schedule set report --cron '0 6 * * mon-fri' --zone Europe/Berlin --handler HANDLER"),
		unreadable ? h("p", { class: "bad" }, `${plural(unreadable, "record")} cannot be read: `, command("quiver fsck")) : null,
		schedules.length ? h("p", { class: "muted" }, `${plural(schedules.length, "schedule")} shown.`, more ? [" ", h("a", { href: `#/schedules${query({ cursor })}` }, "The next page")] : "") : null,
	];
}
