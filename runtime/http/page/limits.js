// limits.js: how much the whole app may start or run at once, how much of it is used, and what waits for it.

import { get, part, query, send } from "./api.js";
import { h, say } from "./dom.js";
import { age, number, plural, rate } from "./format.js";
import { action, command, empty, handlerLink, level, may, table, word } from "./parts.js";
import { refresh, state, wants } from "./state.js";

const limits = () => state.status.limits || [];
const waits = (l) => l.waiting + l.waiting_tasks;

// What it allows: "100 per 1 s, 20 more after a rest", "5 at once".
function allows(l) {
	if (l.kind === "concurrency")
		return `${number(l.concurrency)} at once`;
	return l.kind === "rate" ? `${number(l.rate)} per ${age(l.per_ms)}${l.burst ? `, ${number(l.burst)} more after a rest` : ""}` : "no host names it";
}

const used = (l) => (l.kind === "concurrency" ? `${number(l.in_use)} in use` : `${rate(l.started_rate)} per second`);

export function title(parameters) {
	if (parameters.name) {
		const one = limits().find((l) => l.name === parameters.name);
		return h("span", {}, "Limit ", h("code", {}, parameters.name), one ? `: ${allows(one)}` : " is not known");
	}
	const full = limits().filter((l) => waits(l)).length;
	return limits().length ? `${plural(limits().length, "limit")}, ${full ? `tasks wait for ${number(full)} of them` : "no task waits for one"}` : "Nothing is limited";
}

function setting(l) {
	const isRate = l.kind === "rate";
	const submit = async (event) => {
		event.preventDefault();
		const given = new FormData(event.target);
		const amount = { [isRate ? "rate" : "concurrency"]: Number(given.get("amount")) };
		if (given.get("for"))
			amount.for = given.get("for");
		try {
			await send("PUT", `/v1/limits/${part(l.name)}`, JSON.stringify(amount));
			say(`${l.name} is set on every host${amount.for ? ` for ${amount.for}` : ""}.`);
			for (const field of event.target.elements)
				delete field.dataset.typed;
		} catch (error) {
			say(`${l.name} was not set: ${error.message}`);
		}
		refresh();
	};
	const typed = (event) => { event.target.dataset.typed = ""; };
	if (!may("operate") || !l.kind)
		return null;
	return [h("h2", {}, "Set it for a while"),
		h("form", { class: "filters", onsubmit: submit },
			h("label", {}, isRate ? `starts per ${age(l.per_ms)}` : "at once", h("input", { name: "amount", type: "number", min: 1, required: true, value: isRate ? l.rate : l.concurrency, oninput: typed })),
			h("label", {}, "for (10m; empty: until it is set back)", h("input", { name: "for", value: "10m", oninput: typed, autocomplete: "off" })),
			h("button", { type: "submit", class: "main" }, `Set ${l.name}`)),
		h("p", { class: "muted" }, "The same from a terminal: ", command(`quiver limit set ${word(l.name)} ${isRate ? "--rate" : "--concurrency"} N --for 10m`))];
}

function detail(l) {
	const values = wants(`limit ${l.name}`, () => get(`/v1/limits/${part(l.name)}?limit=100`));
	const list = values.data?.values || [];
	const names = [...new Set(list.flatMap((v) => Object.keys(v)))].filter((name) => !name.endsWith("_base64")).slice(0, 8);
	const told = (name, value) => (value === undefined || value === null ? "–" : name.endsWith("_ms") && typeof value === "number" ? age(value) : typeof value === "object" ? JSON.stringify(value) : String(value));
	return [
		h("dl", { class: "facts" },
			h("dt", {}, "allows"), h("dd", {}, allows(l), l.by ? `, for each ${l.by} of its own` : ""),
			h("dt", {}, "used"), h("dd", {}, used(l), `; ${number(l.granted)} granted to ${plural(l.hosts, "host")}`),
			h("dt", {}, "waiting"), h("dd", {}, waits(l) ? `${plural(l.waiting, "task")} on hosts${l.waiting_tasks ? `, ${l.estimated ? "at least " : ""}${number(l.waiting_tasks)} of ${plural(l.waiting_keys, "key")} in the store` : ""}${l.oldest_ms ? `, the oldest for ${age(l.oldest_ms)}` : ""}` : "nothing"),
			l.set ? [h("dt", {}, "set"), h("dd", { class: "warn" }, `beside the configuration${l.set.until_ms ? `, for another ${age(Math.max(0, l.set.until_ms - state.at))}` : ", until it is set back"}`)] : null,
			h("dt", {}, "handlers"), h("dd", {}, l.handlers.map((name, i) => [i ? ", " : "", handlerLink(name)])),
			l.closed ? [h("dt", {}, "closed"), h("dd", { class: "warn" }, `${plural(l.closed, "value")}: somebody said that it is too much`)] : null,
			h("dt", {}, "started"), h("dd", {}, number(l.started))),
		l.set ? h("div", { class: "actions" }, action({ label: `Set ${l.name} back`, method: "DELETE", path: `/v1/limits/${part(l.name)}`, command: `quiver limit clear ${word(l.name)}` })) : null,
		setting(l),
		l.by && list.length && names.length ? [h("h2", {}, "Values"), table("values", names.map((name) => ({ name: name.replace(/_ms$/, ""), class: typeof list[0][name] === "number" ? "number" : "text", value: (v) => v[name] ?? "", show: (v) => told(name, v[name]) })), list, "Values"),
			h("p", { class: "muted" }, `${plural(list.length, "value")} shown${values.data.more ? "; there are more" : ""}.`)] : null,
		values.error ? h("p", { class: "bad" }, values.error.message) : null,
	];
}

export function view(parameters) {
	if (parameters.name) {
		const one = limits().find((l) => l.name === parameters.name);
		return one ? detail(one) : empty("No host has such a limit in its configuration.");
	}
	if (!limits().length)
		return empty("A limit says how much all hosts together may start or run at once. It stands in runtime.cfg, as limits, and a handler's limited_by names it:", "limits = { smtp = { concurrency = 5; }; };");
	return table("limits", [
		{ name: "limit", value: (l) => l.name, show: (l) => h("a", { href: `#/limits${query({ name: l.name })}` }, l.name) },
		{ name: "allows", class: "text", show: (l) => [allows(l), l.set ? h("span", { class: "warn" }, " ◆ set") : null] },
		{ name: "used", class: "number", value: (l) => (l.kind === "rate" ? l.started_rate : l.in_use), show: used },
		{ name: "granted", class: "number less", value: (l) => l.granted, show: (l) => number(l.granted) },
		{ name: "waiting", class: "number", value: waits, show: (l) => (waits(l) ? level("warn", `${number(waits(l))}${l.estimated ? "+" : ""}`) : "0") },
		{ name: "oldest", class: "number", value: (l) => l.oldest_ms, show: (l) => (l.oldest_ms ? age(l.oldest_ms) : "–") },
		{ name: "by", class: "less", value: (l) => l.by || "", show: (l) => l.by || "–" },
		{ name: "handlers", class: "text less", show: (l) => l.handlers.join(", ") },
	], limits(), "Limits");
}
