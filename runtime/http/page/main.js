// main.js: which page is shown, the head and the list of pages around it.

import { hasToken, setToken, takeToken } from "./api.js";
import { h, show } from "./dom.js";
import { age, number } from "./format.js";
import { command } from "./parts.js";
import { forgetWants, onChange, redraw, start, state } from "./state.js";
import * as overview from "./overview.js";
import * as handlers from "./handlers.js";
import * as keys from "./keys.js";
import * as tasks from "./tasks.js";
import * as task from "./task.js";
import * as dead from "./dead.js";
import * as limits from "./limits.js";
import * as schedules from "./schedules.js";
import * as shards from "./shards.js";
import * as members from "./members.js";
import * as locks from "./locks.js";

const pages = { overview, handlers, keys, tasks, task, dead, schedules, limits, shards, members, locks };
const STALE_MS = 10000;

const listed = [["overview", "Overview"], ["handlers", "Handlers", () => state.status.problems.filter((p) => p.handler && p.level === "bad").length],
	["keys", "Keys", () => state.status.totals.held_keys + state.status.totals.parked_keys], ["tasks", "Tasks"], ["dead", "Dead", () => state.status.totals.dead],
	["schedules", "Schedules"], ["limits", "Limits", () => (state.status.limits || []).filter((l) => l.waiting + l.waiting_tasks).length],
	["shards", "Shards", () => state.status.totals.unowned], ["members", "Members"], ["locks", "Locks"]];

// "#/tasks?state=dead" → the page and its parameters.
function route() {
	const [, name, rest] = location.hash.match(/^#\/(\w*)(?:\?(.*))?$/) || [];
	return { name: Object.hasOwn(pages, name || "") ? name : "overview", parameters: Object.fromEntries(new URLSearchParams(rest || "")) };
}

// --- light and dark ---

const THEME = "quiver-theme";

function applyTheme() {
	const theme = localStorage.getItem(THEME);
	if (theme)
		document.documentElement.dataset.theme = theme;
}

function otherTheme() {
	const isDark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
	localStorage.setItem(THEME, isDark ? "light" : "dark");
	applyTheme();
}

// --- around the page ---

function liveness() {
	const old = Date.now() - state.at;
	if (state.error && state.error.status === 0)
		return h("span", { class: "bad" }, "▲ not reachable", state.at ? `, ${age(old)} old` : "");
	if (state.error)
		return h("span", { class: "bad" }, "▲ refused");
	return old > STALE_MS ? h("span", { class: "warn" }, `● ${age(old)} old`) : h("span", { class: "ok" }, "● live");
}

function roleName() {
	const roles = state.me?.roles || [];
	return roles.includes("operate") ? "operate" : roles.includes("read") ? "read only" : roles.join(", ");
}

function drawHead() {
	show("head", h("span", { class: "app" }, state.me?.app || "Quiver"), state.me ? h("span", {}, state.me.host) : null, state.me || state.error ? liveness() : null,
		h("span", { class: "end" }, h("span", { class: "muted", title: "what your token may do" }, roleName()),
			h("button", { type: "button", class: "icon", "aria-label": "Light or dark", title: "Light or dark", onclick: otherTheme }, "◐")));
}

function drawNav(current) {
	show("nav", listed.map(([name, text, count]) => {
		const many = count && state.status ? count() : 0;
		return h("a", { href: `#/${name === "overview" ? "" : name}`, "aria-current": name === current || (current === "task" && name === "tasks") ? "page" : null },
			text, many ? h("span", { class: "count" }, number(many)) : null);
	}));
}

// The host does not answer, or does not let us in.
function banner() {
	if (!state.error)
		return null;
	if (state.error.status === 401 || state.error.status === 403)
		return h("div", { class: "banner", role: "alert" }, h("strong", {}, "Your token is not accepted any more. "), `${state.error.message}. What is shown is the last that was known. Open the page with another: `, command("quiver page"));
	const others = (state.status?.members || []).filter((m) => m.name !== state.me?.host && m.http);
	return h("div", { class: "banner", role: "alert" }, h("strong", {}, `${state.me?.host || "The host"} does not answer. `), `Asked for its status: ${state.error.message}. `,
		state.status ? "What is shown is the last that was known. " : "", "The page goes on asking. ",
		others.length ? ["Other hosts: ", others.map((m) => [h("a", { href: `http://${m.http}/#/` }, m.name), " "])] : "Is it running?");
}

function door() {
	const enter = (event) => {
		event.preventDefault();
		setToken(new FormData(event.target).get("token").trim());
		location.reload();
	};
	const isWrong = hasToken();
	return h("form", { class: "door", onsubmit: enter },
		h("h1", {}, isWrong ? (state.error.status === 403 ? "This token may not look" : "This token is not known here") : "Who are you?"),
		h("p", {}, isWrong ? `${state.error.message}.` : "This page shows nothing without a token. The first start of a host has made one:"),
		h("p", {}, command("cat var/http.token")),
		h("p", {}, h("label", {}, "token", h("input", { name: "token", type: "password", autocomplete: "off", required: true, oninput: (e) => { e.target.dataset.typed = ""; } }))),
		h("button", { type: "submit", class: "main" }, "Look"),
		h("p", { class: "muted" }, "It is kept for this tab only."));
}

// On a small screen the list of pages is wider than the screen.
const showPlace = () => document.querySelector("nav [aria-current]")?.scrollIntoView({ inline: "nearest", block: "nearest" });

let drawn = "";

function draw() {
	const { name, parameters } = route();
	forgetWants();
	drawHead();
	const isOut = state.error && (state.error.status === 401 || state.error.status === 403) && !state.status;
	drawNav(name);
	if (isOut) {
		show("view", door());
		return;
	}
	if (!state.status) {
		show("view", banner() || h("p", { class: "muted" }, "Asking the host."));
		return;
	}
	const page = pages[name];
	const title = page.title(parameters);
	document.title = `${typeof title === "string" ? title : name} · ${state.me?.app || "Quiver"}`;
	show("view", h("div", {}, banner()), h("div", { "data-key": location.hash, class: state.error ? "stale" : null }, h("h1", {}, title), page.view(parameters)));
	if (drawn !== location.hash) {
		showPlace();
		if (drawn)
			document.getElementById("view").focus({ preventScroll: true });
		drawn = location.hash;
	}
}

applyTheme();
takeToken();
onChange(draw);
window.addEventListener("resize", () => {
	showPlace();
	redraw();
});
window.addEventListener("hashchange", () => {
	if (/^#token=/.test(location.hash)) {
		takeToken();
		location.reload();
		return;
	}
	window.scrollTo(0, 0);
	redraw();
});
draw();
start();
