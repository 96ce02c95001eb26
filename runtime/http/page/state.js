// state.js: what the page knows, and when it asks again.
//
// `state.status` is the last status that came, `state.at` when; it stays while newer ones fail.  A page that needs more
// says so with `wants(name, load)`; what it wants is loaded when it is shown, and again with every new status.

import { get, call } from "./api.js";

const POLL_MS = 2000;
const STREAM_SILENT_MS = 20000;
const SAMPLES_MAX = 900;

export const state = { me: null, status: null, at: 0, error: null, samples: [], loaded: new Map() };

let draw = () => {};
let pending = false;
let timer = 0;
let stream = null;

export function onChange(callback) {
	draw = callback;
}

// Several changes of one moment are one drawing.
export function redraw() {
	if (pending)
		return;
	pending = true;
	queueMicrotask(() => {
		pending = false;
		draw();
	});
}

function takeStatus(status) {
	const totals = status.totals;
	const seats = status.members.reduce((sum, m) => sum + (m.seats || 0), 0);
	state.status = status;
	state.at = Date.now();
	state.error = null;
	state.samples.push({ at: state.at, waiting: totals.waiting, running: totals.running, done: status.rates.done,
		failed: status.rates.failed, oldest_ms: totals.oldest_ms, dead: totals.dead, seats, seats_used: Math.min(totals.running, seats) });
	if (state.samples.length > SAMPLES_MAX)
		state.samples.shift();
	reload();
	redraw();
}

async function poll() {
	clearTimeout(timer);
	if (document.hidden)
		return;
	try {
		state.me = state.me || await get("/v1/me");
		takeStatus(await get("/v1/status"));
	} catch (error) {
		state.error = error;
		redraw();
	}
	timer = setTimeout(poll, POLL_MS);
}

// --- what a page wants besides ---

let wanted = [];

// Data of the page that is shown: undefined until it came.  `load` returns a promise.
export function wants(name, load) {
	const known = state.loaded.get(name);
	wanted.push({ name, load });
	if (!known)
		fetchWanted({ name, load });
	return state.loaded.get(name) || { data: undefined, error: null };
}

export function forgetWants() {
	wanted = [];
}

async function fetchWanted({ name, load }) {
	const entry = state.loaded.get(name) || { data: undefined, error: null };
	if (entry.isLoading)
		return;
	entry.isLoading = true;
	state.loaded.set(name, entry);
	try {
		entry.data = await load();
		entry.error = null;
	} catch (error) {
		entry.error = error;
	}
	entry.isLoading = false;
	// What no page has wanted for a while is not kept.
	if (state.loaded.size > 50)
		for (const key of [...state.loaded.keys()].slice(0, 25))
			if (!wanted.some((w) => w.name === key))
				state.loaded.delete(key);
	redraw();
}

function reload() {
	for (const one of wanted)
		fetchWanted(one);
}

// Everything anew, at once: after an action.
export function refresh() {
	reload();
	poll();
}

// --- one stream per tab; without it the page asks every two seconds ---

async function follow() {
	const mine = stream = new AbortController();
	let silent = 0;
	const heard = () => {
		clearTimeout(silent);
		silent = setTimeout(() => mine.abort(), STREAM_SILENT_MS);
	};
	try {
		const answer = await call("GET", "/v1/events", { signal: mine.signal });
		if (!answer.ok)
			return false;
		const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
		let text = "";
		for (;;) {
			const { value, done } = await reader.read();
			if (done)
				return true;
			heard();
			clearTimeout(timer);
			text += value;
			const events = text.split("\n\n");
			text = events.pop();
			for (const event of events) {
				const data = event.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5)).join("\n");
				if (data)
					takeStatus(JSON.parse(data));
			}
		}
	} catch {
		return true;
	} finally {
		clearTimeout(silent);
		if (stream === mine)
			stream = null;
	}
}

async function live() {
	while (!document.hidden && state.me) {
		if (!await follow())
			return;
		if (document.hidden)
			return;
		await poll();
		await new Promise((resolve) => setTimeout(resolve, POLL_MS));
	}
}

export async function start() {
	document.addEventListener("visibilitychange", async () => {
		if (document.hidden) {
			stream?.abort();
			clearTimeout(timer);
		} else {
			await poll();
			live();
		}
	});
	setInterval(redraw, 1000);
	await poll();
	live();
}
