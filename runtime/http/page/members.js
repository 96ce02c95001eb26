// members.js: the hosts: what each owns, how it does, and draining one.

import { get, part } from "./api.js";
import { h } from "./dom.js";
import { age, number, plural, rate } from "./format.js";
import { action, command, empty, since, table, used, word } from "./parts.js";
import { state, wants } from "./state.js";

export function title() {
	const members = state.status.members;
	const others = members.filter((m) => m.state !== "running" && m.state !== "standby").length;
	return `${plural(members.length, "host")}${others ? "" : members.length === 1 ? " does all the work" : " share the work"}${others ? `, ${number(others)} of them ${others === 1 ? "does" : "do"} not take work` : ""}`;
}

const isDrained = (m) => Object.entries(state.status.totals.desired).some(([name]) => name === `drain.${m.name}`) || m.state === "drained" || m.state === "draining";

function act(m) {
	return isDrained(m)
		? action({ label: `Give ${m.name} work again`, path: `/v1/members/${part(m.name)}/activate`, command: `quiver members activate ${word(m.name)}` })
		: action({ label: `Drain ${m.name}`, path: `/v1/members/${part(m.name)}/drain`, command: `quiver members drain ${word(m.name)}`,
			warns: `${m.name} finishes what runs, gives its ${plural(m.shards, "shard")} to the other hosts, and stays without work until it is given some again.` });
}

export function view() {
	const { members } = state.status;
	const tree = wants("members", () => get("/v1/members")).data;
	const leader = tree?.members.find((m) => m.leader)?.name;
	if (!members.length)
		return empty("No host is running. Start one:", "quiver run");
	return [
		table("members", [
			{ name: "host", value: (m) => m.name, show: (m) => h("span", {}, h("strong", {}, m.name), h("span", { class: "muted" }, m.name === state.me?.host ? " answers this page" : "", m.name === leader ? `${m.name === state.me?.host ? "," : ""} leads` : "")) },
			{ name: "state", value: (m) => m.state, show: (m) => h("span", { class: m.state === "running" || m.state === "standby" ? "ok" : "warn" }, m.state || "?") },
			{ name: "shards", class: "number", value: (m) => m.shards, show: (m) => number(m.shards) },
			{ name: "running", class: "number", value: (m) => m.running || 0, show: (m) => used(m.running, m.seats) },
			{ name: "done/s", class: "number", value: (m) => m.done_rate || 0, show: (m) => rate(m.done_rate) },
			{ name: "machine", class: "less", value: (m) => m.machine || "", show: (m) => m.machine || "–" },
			{ name: "pid", class: "number less", value: (m) => m.pid || 0, show: (m) => (m.pid ? String(m.pid) : "–") },
			{ name: "version", class: "less", value: (m) => m.version || "", show: (m) => m.version || "–" },
			{ name: "up for", class: "number less", value: (m) => -(m.started_ms || 0), show: (m) => since(m.started_ms, state.at) },
			{ name: "heard of", class: "number", value: (m) => m.age_ms, show: (m) => `${age(m.age_ms)} ago` },
			{ name: "", show: act },
		], members, "Members"),
		members.flatMap((m) => (m.unserved || []).map((name) => h("p", { class: "warn" }, `Tasks of ${name} wait at ${m.name}, which has no such handler.`))),
		members.filter((m) => m.move_pending?.length).map((m) => h("p", { class: "muted" }, `${m.name} gives away ${plural(m.move_pending.length, "shard")} when the calls that run there end: ${m.move_pending.join(", ")}.`)),
		h("p", { class: "muted" }, leader ? `${leader} leads: it says who owns which shard. ` : "", h("a", { href: "#/shards" }, "What moved last"), ". From a terminal: ", command("quiver members")),
	];
}
