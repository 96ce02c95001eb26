// api.js: the one door to the host: its HTTP API, with the token of this tab.

const STORED = "quiver-token";

// A link with #token=… gives the tab its token.  A fragment is never sent; it leaves the address at once.
export function takeToken() {
	const found = location.hash.match(/^#token=([\x21-\x7e]{16,128})$/);
	if (found) {
		setToken(found[1]);
		history.replaceState(null, "", location.pathname + "#/");
	}
}

export function setToken(token) {
	sessionStorage.setItem(STORED, token);
}

export const hasToken = () => sessionStorage.getItem(STORED) !== null;

export class Problem extends Error {
	constructor(status, text) {
		super(text);
		this.status = status;
	}
}

export function call(method, path, options = {}) {
	const token = sessionStorage.getItem(STORED);
	const headers = { ...(options.headers || {}) };
	if (token)
		headers.Authorization = `Bearer ${token}`;
	return fetch(path, { method, headers, body: options.body, signal: options.signal, credentials: "omit" });
}

async function problemOf(answer) {
	let text = `${answer.status} ${answer.statusText}`;
	try {
		const said = await answer.json();
		text = said.detail || text;
	} catch {
		// An answer that is no problem JSON has said all with its status.
	}
	return new Problem(answer.status, text);
}

async function json(method, path, options) {
	let answer;
	try {
		answer = await call(method, path, options);
	} catch (error) {
		if (error.name === "AbortError")
			throw error;
		throw new Problem(0, "the host does not answer");
	}
	if (!answer.ok)
		throw await problemOf(answer);
	const text = await answer.text();
	return text ? JSON.parse(text) : null;
}

export const get = (path, signal) => json("GET", path, { signal });
export const send = (method, path, body) => json(method, path, { body });
export const post = (path, body) => send("POST", path, body);

// "?state=dead&handler=mail" of what has a value.
export function query(parameters) {
	const list = new URLSearchParams();
	for (const [name, value] of Object.entries(parameters))
		if (value !== "" && value !== null && value !== undefined)
			list.set(name, value);
	const text = list.toString();
	return text ? `?${text}` : "";
}

// A part of a path: keys may have slashes and anything else in them.
export const part = (text) => encodeURIComponent(text).replace(/[!'()*.]/g, (c) => `%${c.charCodeAt(0).toString(16)}`);
