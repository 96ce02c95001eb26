// parts.js: pieces that several pages are made of: tables, ages, commands to copy, actions that ask once.

import { part, post, query, send } from "./api.js";
import { h, say, svg } from "./dom.js";
import { age, cut, number, plural, time } from "./format.js";
import { state, redraw, refresh } from "./state.js";

export const may = (role) => (state.me?.roles || []).includes(role);

// An age with the time itself behind it.
export const since = (ms, now) =>
	ms ? h("time", { datetime: new Date(ms).toISOString(), title: time(ms) }, age(Math.max(0, now - ms))) : "–";

export const mono = (text, most = 40) =>
	h("span", { class: "mono", title: [...text].length > most ? text : null }, cut(text, most));

export function copyable(text, label = "Copy") {
	const copy = async () => {
		try {
			await navigator.clipboard.writeText(text);
			say("Copied.");
		} catch {
			say("The browser does not let this page copy; select the text instead.");
		}
	};
	return h("button", { type: "button", class: "icon", "aria-label": `${label}: ${text}`, title: label, onclick: copy },
		svg("svg", { viewBox: "0 0 16 16", width: 14, height: 14, "aria-hidden": "true", class: "copy" },
			svg("rect", { x: 5, y: 5, width: 9, height: 9, rx: 1.5 }), svg("path", { d: "M11 2.5H4A1.5 1.5 0 0 0 2.5 4v7" })));
}

// The command that does the same.
export const command = (text) => h("span", { class: "command" }, h("code", {}, text), copyable(text, "Copy the command"));

// A word of a shell.
export const word = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`);

export const taskLink = (id) => h("a", { class: "mono", href: `#/task${query({ id })}`, title: id }, cut(id, 26));
export const keyLink = (key) => h("a", { class: "mono", href: `#/keys${query({ key })}`, title: key }, cut(key, 32));
export const handlerLink = (name) => h("a", { href: `#/handlers${query({ name })}` }, name);

// --- tables ---

const sorted = {};

// A column: { name, unit, value(row) for sorting, show(row), class }.
export function table(id, columns, rows, caption) {
	const by = sorted[id];
	const column = by && columns.find((c) => c.name === by.name);
	if (column)
		rows = [...rows].sort((a, b) => {
			const [x, y] = [column.value(a), column.value(b)];
			return (x < y ? -1 : x > y ? 1 : 0) * by.direction;
		});
	const head = (c) => {
		const direction = by?.name === c.name ? by.direction : 0;
		const sort = () => {
			sorted[id] = { name: c.name, direction: direction ? -direction : c.class?.includes("number") ? -1 : 1 };
			redraw();
		};
		const text = c.unit ? `${c.name} (${c.unit})` : c.name;
		return h("th", { class: c.class, scope: "col", "aria-sort": direction ? (direction > 0 ? "ascending" : "descending") : null },
			c.value ? h("button", { type: "button", onclick: sort }, text, direction ? (direction > 0 ? " ↑" : " ↓") : "") : text);
	};
	return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
		h("table", {}, h("thead", {}, h("tr", {}, columns.map(head))),
			h("tbody", {}, rows.map((row) => h("tr", { class: "row" }, columns.map((c) => h("td", { class: c.class, "data-name": c.name }, c.show(row))))))));
}

// --- actions ---

let asking = null;

// A button that says what it does, and asks once, in place, if it says what it warns of; isFinal: nothing
// brings back what it takes away.  { label, path, method, body, command, warns, isFinal, done, id }.
export function action(a) {
	// Which question it is; the path alone may change while it is asked.
	const id = a.id || a.path;
	if (!may("operate"))
		return null;
	const go = async () => {
		asking = null;
		try {
			say(a.run ? await a.run() : await send(a.method || "POST", a.path, a.body).then((answer) => (a.done ? a.done(answer) : `${a.label}: done.`)));
		} catch (error) {
			say(`${a.label}: ${error.message}`);
		}
		refresh();
	};
	const ask = () => {
		asking = asking === id ? null : id;
		redraw();
	};
	const button = h("button", { type: "button", class: a.isFinal ? "danger" : null, onclick: a.warns ? ask : go,
		"aria-expanded": a.warns ? String(asking === id) : null, title: a.command }, a.label);
	if (asking !== id)
		return button;
	return h("div", { class: a.isFinal ? "confirm final" : "confirm", role: "group", "aria-label": a.label }, h("div", {}, a.warns),
		h("div", { class: "do" }, h("button", { type: "button", class: a.isFinal ? "danger" : "main", onclick: go }, a.label),
			h("button", { type: "button", onclick: ask }, "Leave it")),
		a.command ? h("div", { class: "muted" }, "The same from a terminal: ", command(a.command)) : null);
}

const jobs = new Map();

// An action on many tasks, a step at a time, until all that were meant are through or a person stops it:
// { id, label, path, parameters, total, done: "requeued", warns, command }.
export function bulk(a) {
	const job = jobs.get(a.id);
	if (job)
		return h("span", { class: "actions" }, h("progress", { max: job.total || 1, value: job.acted, "aria-label": a.label }), `${number(job.acted)} of ${number(job.total)} ${a.done}`,
			h("button", { type: "button", onclick: () => { job.isStopped = true; } }, "Stop"));
	const run = async () => {
		const mine = { acted: 0, total: a.total, isStopped: false };
		let cursor = "", more = true;
		jobs.set(a.id, mine);
		redraw();
		try {
			while (more && !mine.isStopped) {
				const answer = await post(`${a.path}${query({ ...a.parameters, cursor })}`);
				mine.acted += answer[a.done];
				({ more, cursor } = answer);
				redraw();
			}
		} catch (error) {
			throw new Error(`${error.message}. ${plural(mine.acted, "task")} ${a.done} before that.`);
		} finally {
			jobs.delete(a.id);
		}
		return `${plural(mine.acted, "task")} ${a.done}${mine.acted < a.total ? ` of ${number(a.total)}${mine.isStopped ? "; stopped" : "; the others have changed meanwhile"}` : ""}.`;
	};
	return action({ ...a, run });
}

// Which of the tasks that a list showed: what a bulk action says with it, so that whatever came later is left alone.
export const seen = (filter, time) => ({ ...filter, before: time, all: Object.values(filter).some((v) => v !== "" && v !== null && v !== undefined) ? "" : 1 });

// A word with a shape: its meaning does not hang on the colour.
export const level = (name, text) => h("span", { class: name }, h("span", { "aria-hidden": "true" }, { ok: "●\u00a0", warn: "◆\u00a0", bad: "▲\u00a0", muted: "○\u00a0" }[name]), text);

// So many of so many, if there is such a limit.
export const used = (value, of) => h("span", {}, number(value), of ? h("span", { class: "muted", title: "seats" }, ` / ${number(of)}`) : null);

export const keyPath = (key, verb) => `/v1/keys/${part(key)}/${verb}`;
export const empty = (text, example) => h("p", { class: "muted" }, text, example ? [" ", command(example)] : null);
export const count = (value) => number(value);
