// format.js: numbers, ages and texts as people say them.

const GAP = "\u202f";

export const number = (value) => String(Math.round(value || 0)).replace(/\B(?=(\d{3})+$)/g, GAP);

// As exact as it matters: 0.31, 4.2, 8 412.
export function rate(value) {
	if (!value)
		return "0";
	return value < 1 ? value.toFixed(2) : value < 10 ? value.toFixed(1) : number(value);
}

export const plural = (count, word, words = `${word}s`) => `${number(count)} ${count === 1 ? word : words}`;

export function age(ms) {
	if (ms === null || ms === undefined)
		return "–";
	if (ms < 1)
		return ms > 0 ? `${(ms).toFixed(2)} ms` : "0 s";
	if (ms < 1000)
		return `${ms < 10 ? ms.toFixed(1).replace(/\.0$/, "") : Math.round(ms)} ms`;
	const s = ms / 1000;
	if (s < 10)
		return `${s.toFixed(1).replace(/\.0$/, "")} s`;
	if (s < 60)
		return `${Math.floor(s)} s`;
	const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
	const first = units.findIndex(([, size]) => s >= size);
	const [name, size] = units[first];
	const [below, small] = units[Math.min(first + 1, 3)];
	const rest = Math.floor((s % size) / small);
	return `${Math.floor(s / size)} ${name}${rest ? ` ${rest} ${below}` : ""}`;
}

export function bytes(size) {
	if (size < 1024)
		return `${size} B`;
	const units = ["KiB", "MiB", "GiB", "TiB"];
	let at = -1;
	do {
		size /= 1024;
		at++;
	} while (size >= 1024 && at < units.length - 1);
	return `${size.toFixed(size < 10 ? 1 : 0)} ${units[at]}`;
}

const two = (value) => String(value).padStart(2, "0");

export function time(ms) {
	const at = new Date(ms);
	if (isNaN(at))
		return "?";
	return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock(ms)}`;
}

export function clock(ms) {
	const at = new Date(ms);
	return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

// Cut in the middle: the ends of ids and keys tell more.
export function cut(text, most) {
	const signs = [...text];
	if (signs.length <= most)
		return text;
	const left = Math.ceil((most - 1) / 2);
	return signs.slice(0, left).join("") + "…" + signs.slice(signs.length - (most - 1 - left)).join("");
}
