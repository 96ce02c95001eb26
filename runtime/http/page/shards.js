// shards.js: one square for each shard: who owns it, at which epoch, what waits there.

import { get, query } from "./api.js";
import { h } from "./dom.js";
import { age, number, plural } from "./format.js";
import { since, table } from "./parts.js";
import { redraw, state, wants } from "./state.js";

const OWNERS = 8;
const LISTED = 512; // on a small screen
const SAME_MOVE_MS = 5000;
let chosen = null;

const letter = (index) => (index < 0 ? "–" : index < 26 ? String.fromCharCode(65 + index) : String(index + 1));

export function title() {
	const { owned, unowned } = state.status.totals;
	return unowned ? `${plural(unowned, "shard")} of ${number(owned + unowned)} ${unowned === 1 ? "has" : "have"} no owner` : `All ${number(owned)} shards have an owner`;
}

// 0, 1, 2, 5 → "0–2, 5".
function ranges(numbers) {
	const list = [];
	for (const n of [...numbers].sort((a, b) => a - b))
		if (list.length && list.at(-1)[1] === n - 1)
			list.at(-1)[1] = n;
		else
			list.push([n, n]);
	return list.map(([a, b]) => (a === b ? `${a}` : `${a}–${b}`)).join(", ");
}

// What moved last: from whom to whom, and the epoch that the new owner writes with.  Those of one moment are one row.
function moves() {
	const { data } = wants("members", () => get("/v1/members"));
	if (!data?.moves?.length)
		return null;
	const rows = [];
	for (const m of [...data.moves].sort((a, b) => b.at_ms - a.at_ms)) {
		const row = rows.find((r) => r.from === m.from && r.to === m.to && r.reason === m.reason && r.at_ms - m.at_ms < SAME_MOVE_MS);
		if (row) {
			row.shards.push(m.shard);
			row.epoch = Math.max(row.epoch, m.epoch);
		} else {
			rows.push({ ...m, shards: [m.shard] });
		}
	}
	return [h("h2", {}, "Latest moves"), table("moves", [
		{ name: "when", class: "number", value: (m) => m.at_ms, show: (m) => [since(m.at_ms, state.at), " ago"] },
		{ name: "from", value: (m) => m.from, show: (m) => m.from || "nobody" },
		{ name: "to", value: (m) => m.to, show: (m) => m.to || "nobody" },
		{ name: "why", value: (m) => m.reason, show: (m) => m.reason || "–" },
		{ name: "shards", class: "text", show: (m) => ranges(m.shards) },
		{ name: "epoch", class: "number less", value: (m) => m.epoch, show: (m) => String(m.epoch) },
	], rows, "Latest moves"), h("p", { class: "muted" }, `${plural(data.moves.length, "move")} of shards are remembered. An epoch is the number of an ownership: who writes with an older one is refused.`)];
}

function detail(shard, owner) {
	return h("dl", { class: "facts" },
		h("dt", {}, "shard"), h("dd", {}, number(shard.shard)),
		h("dt", {}, "owner"), h("dd", {}, owner ? owner.name : shard.owner ? `a host that says nothing (${shard.owner.slice(0, 8)})` : "none"),
		h("dt", {}, "epoch"), h("dd", {}, String(shard.epoch)),
		h("dt", {}, "waiting"), h("dd", {}, number(shard.waiting), shard.waiting ? `, the oldest for ${age(shard.oldest_ms)}` : ""),
		h("dt", {}, "running"), h("dd", {}, number(shard.running)),
		h("dt", {}, "delayed"), h("dd", {}, number(shard.delayed)),
		h("dt", {}, "dead"), h("dd", {}, number(shard.dead)));
}

export function view() {
	const { shards } = state.status;
	const members = [...state.status.members].sort((a, b) => (a.name < b.name ? -1 : 1));
	const index = new Map(members.map((m, i) => [m.nonce, i]));
	const moving = new Set(members.flatMap((m) => m.move_pending || []));
	const of = (s) => (s.owner && index.has(s.owner) ? index.get(s.owner) : -1);
	const most = Math.max(1, ...shards.map((s) => s.waiting));
	const about = (s) => `shard ${s.shard}, ${of(s) < 0 ? "no owner" : members[of(s)].name}, epoch ${s.epoch}, ${s.waiting} waiting${s.waiting ? `, oldest ${age(s.oldest_ms)}` : ""}${moving.has(s.shard) ? ", moving" : ""}`;
	const choose = (s) => () => {
		chosen = s.shard;
		redraw();
	};
	const classes = (i, s) => ["shard", i < 0 ? "none" : `owner-${i % OWNERS}`, s && moving.has(s.shard) ? "moving" : "", s && s.waiting > most / 4 && s.waiting > 10 ? "busy" : ""].join(" ");
	const one = shards.find((s) => s.shard === chosen);
	return [
		h("ul", { class: "legend" }, members.map((m, i) => h("li", {}, h("span", { class: classes(i), "aria-hidden": "true" }, letter(i)), `${letter(i)}: ${m.name}, ${plural(m.shards, "shard")}`)),
			state.status.totals.unowned ? h("li", {}, h("span", { class: "shard none", "aria-hidden": "true" }, "–"), "no owner") : null,
			moving.size ? h("li", {}, h("span", { class: "shard moving", "aria-hidden": "true" }), "moves when the calls that run there end") : null),
		h("ul", { class: "shards", "aria-label": "Shards" }, shards.map((s) => h("li", {},
			h("button", { type: "button", class: classes(of(s), s), title: about(s), "aria-label": about(s), "aria-pressed": String(chosen === s.shard), onclick: choose(s), onfocus: choose(s) }, letter(of(s)))))),
		h("table", { class: "narrow-list" }, h("thead", {}, h("tr", {}, h("th", { class: "number" }, "shard"), h("th", {}, "owner"), h("th", { class: "number" }, "epoch"), h("th", { class: "number" }, "waiting"))),
			h("tbody", {}, shards.slice(0, LISTED).map((s) => h("tr", {}, h("td", { class: "number" }, number(s.shard)), h("td", {}, of(s) < 0 ? "none" : members[of(s)].name, moving.has(s.shard) ? ", moving" : ""), h("td", { class: "number" }, String(s.epoch)), h("td", { class: "number" }, number(s.waiting)))))),
		shards.length > LISTED ? h("p", { class: "narrow-list muted" }, `${number(LISTED)} of ${number(shards.length)} shards are listed.`) : null,
		one ? detail(one, members[of(one)]) : h("p", { class: "muted" }, "Choose a shard to see more of it. A line at the foot of a square: much waits there."),
		h("p", {}, h("a", { href: `#/tasks${query({ state: "waiting" })}` }, "What waits")),
		moves(),
	];
}
