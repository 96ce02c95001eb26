// shards.js: one square for each shard: who owns it, at which epoch, what waits there.

import { query } from "./api.js";
import { h } from "./dom.js";
import { age, number, plural } from "./format.js";
import { redraw, state } from "./state.js";

const OWNERS = 8;
let chosen = null;

const letter = (index) => (index < 0 ? "–" : index < 26 ? String.fromCharCode(65 + index) : String(index + 1));

export function title() {
	const { owned, unowned } = state.status.totals;
	return unowned ? `${plural(unowned, "shard")} of ${number(owned + unowned)} ${unowned === 1 ? "has" : "have"} no owner` : `All ${number(owned)} shards have an owner`;
}

function detail(shard, owner) {
	return h("dl", { class: "facts" },
		h("dt", {}, "shard"), h("dd", {}, number(shard.shard)),
		h("dt", {}, "owner"), h("dd", {}, owner ? owner.name : shard.owner ? `a host that says nothing (${shard.owner.slice(0, 8)})` : "none"),
		h("dt", {}, "epoch"), h("dd", {}, number(shard.epoch)),
		h("dt", {}, "waiting"), h("dd", {}, number(shard.waiting), shard.waiting ? `, the oldest for ${age(shard.oldest_ms)}` : ""),
		h("dt", {}, "running"), h("dd", {}, number(shard.running)),
		h("dt", {}, "delayed"), h("dd", {}, number(shard.delayed)),
		h("dt", {}, "dead"), h("dd", {}, number(shard.dead)));
}

export function view() {
	const { shards, members } = state.status;
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
		h("table", { class: "narrow-list" }, h("thead", {}, h("tr", {}, h("th", { class: "number" }, "shard"), h("th", {}, "owner"), h("th", { class: "number" }, "waiting"))),
			h("tbody", {}, shards.slice(0, 512).map((s) => h("tr", {}, h("td", { class: "number" }, number(s.shard)), h("td", {}, of(s) < 0 ? "none" : members[of(s)].name), h("td", { class: "number" }, number(s.waiting)))))),
		one ? detail(one, members[of(one)]) : h("p", { class: "muted" }, "Choose a shard to see more of it. A line at the foot of a square: much waits there."),
		h("p", {}, h("a", { href: `#/tasks${query({ state: "waiting" })}` }, "What waits")),
	];
}
