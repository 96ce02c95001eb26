// plot.js: lines over time.  Axes with units, a legend that tells the values now, on hover and by the arrow keys, a table behind it.

import { h, svg } from "./dom.js";
import { clock } from "./format.js";
import { redraw } from "./state.js";

const LEFT = 52, RIGHT = 14, TOP = 10, BOTTOM = 22, H = 140;
const cursors = new Map();

function niceStep(range, count) {
	const raw = range / count;
	const size = 10 ** Math.floor(Math.log10(raw));
	return [1, 2, 5, 10].map((f) => f * size).find((step) => step >= raw);
}

// Zero-based for counts; of latencies each step is ten times the one before.
function scaleOf(values, isLog, isWhole) {
	const most = Math.max(...values, isLog ? 1 : 0);
	if (isLog) {
		const least = Math.min(...values.filter((v) => v > 0), most);
		const low = Math.floor(Math.log10(least)), high = Math.max(Math.ceil(Math.log10(most)), low + 1);
		const ticks = Array.from({ length: high - low + 1 }, (_, i) => 10 ** (low + i));
		return { ticks, y: (v) => (Math.log10(Math.max(v, 10 ** low)) - low) / (high - low) };
	}
	const step = Math.max(niceStep(most || 1, 4), isWhole ? 1 : 0);
	const top = Math.max(step, Math.ceil((most || 1) / step) * step);
	return { ticks: Array.from({ length: Math.round(top / step) + 1 }, (_, i) => i * step), y: (v) => v / top };
}

// A line with gaps where nothing was measured.
function path(points, x, y, gapMs) {
	let text = "", last = null;
	for (const [at, value] of points) {
		if (value === null || value === undefined) {
			last = null;
			continue;
		}
		text += `${last === null || at - last > gapMs ? "M" : "L"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`;
		last = at;
	}
	return text;
}

// series: [{ name, points: [[time_ms, value], …] }], of one unit; show(value) says a value.
export function plot({ id, title, series, show, isLog = false, isWhole = false, from, to, gapMs }) {
	// As wide as it is shown, or its texts would shrink with it.
	const W = innerWidth < 720 ? 330 : 520;
	const values = series.flatMap((s) => s.points.map(([, v]) => v)).filter((v) => v !== null && v !== undefined);
	const scale = scaleOf(values.length ? values : [0], isLog, isWhole);
	const x = (at) => LEFT + (W - LEFT - RIGHT) * (at - from) / Math.max(1, to - from);
	const y = (v) => TOP + (H - TOP - BOTTOM) * (1 - scale.y(v));
	const times = [...new Set(series.flatMap((s) => s.points.map(([at]) => at)))].sort((a, b) => a - b);
	const cursor = cursors.get(id);
	const at = cursor === undefined ? null : times.reduce((best, t) => (best === null || Math.abs(t - cursor) < Math.abs(best - cursor) ? t : best), null);
	const valueAt = (s) => s.points.find(([t]) => t === at)?.[1];
	const move = (event) => {
		const box = event.currentTarget.getBoundingClientRect();
		const where = (event.clientX - box.left) / box.width * W;
		cursors.set(id, from + (where - LEFT) / (W - LEFT - RIGHT) * (to - from));
		redraw();
	};
	const leave = () => {
		cursors.delete(id);
		redraw();
	};
	const key = (event) => {
		const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
		if (!step || !times.length)
			return;
		event.preventDefault();
		const now = at === null ? times.length - 1 : times.indexOf(at);
		cursors.set(id, times[Math.min(times.length - 1, Math.max(0, now + step))]);
		redraw();
	};
	const ticks = [0, 1 / 3, 2 / 3, 1].map((f) => from + f * (to - from));
	const latest = series.map((s) => s.points.filter(([, v]) => v !== null && v !== undefined).at(-1));
	const told = series.map((s, i) => (at === null ? latest[i]?.[1] : valueAt(s)) ?? null);
	const say = at === null ? "" : `${clock(at)}: ${series.map((s, i) => `${s.name} ${told[i] === null ? "–" : show(told[i])}`).join(", ")}`;
	return h("figure", {},
		h("figcaption", {}, title, h("ul", { class: "key" }, at === null ? null : h("li", {}, clock(at)),
			series.map((s, i) => h("li", {}, svg("svg", { viewBox: "0 0 24 8", "aria-hidden": "true" }, svg("path", { class: `line s${i}`, d: "M1 4H23" })), `${s.name} `, h("b", {}, told[i] === null ? "–" : show(told[i])))))),
		svg("svg", { class: "plot", viewBox: `0 0 ${W} ${H}`, role: "img", tabindex: 0, "aria-label": `${title}. ${values.length ? "Arrow keys tell the values." : "Nothing was measured yet."}`,
			onmousemove: move, onmouseleave: leave, onkeydown: key, onblur: leave },
		scale.ticks.map((v) => [svg("line", { class: "grid", x1: LEFT, x2: W - RIGHT, y1: y(v), y2: y(v) }),
			svg("text", { x: LEFT - 6, y: y(v) + 4, "text-anchor": "end" }, show(v))]),
		ticks.map((t, i) => svg("text", { x: x(t), y: H - 6, "text-anchor": i === ticks.length - 1 ? "end" : "middle" }, to - from < 600000 ? clock(t) : clock(t).slice(0, 5))),
		at === null ? null : svg("line", { class: "cursor", x1: x(at), x2: x(at), y1: TOP, y2: H - BOTTOM }),
		series.map((s, i) => svg("path", { class: `line s${i}`, d: path(s.points, x, y, gapMs) })),
		latest.map((p, i) => (p && p[0] >= from ? svg("circle", { class: `newest s${i}`, cx: x(p[0]), cy: y(p[1]), r: 3 }) : null))),
		h("span", { class: "hidden", "aria-live": "polite" }, say),
		h("details", {}, h("summary", {}, "As a table"), h("div", {}, h("table", {},
			h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "time"), series.map((s) => h("th", { class: "number", scope: "col" }, s.name)))),
			h("tbody", {}, times.slice(-60).reverse().map((t) => h("tr", {}, h("td", {}, clock(t)), series.map((s) => {
				const v = s.points.find(([when]) => when === t)?.[1];
				return h("td", { class: "number" }, v === undefined || v === null ? "–" : show(v));
			}))))))));
}

// A line without axes, for beside a number that is told.
export function spark(values) {
	const points = values.slice(-120);
	if (points.length < 2)
		return svg("svg", { viewBox: "0 0 100 24", "aria-hidden": "true" });
	const most = Math.max(...points, 1e-9);
	const d = points.map((v, i) => `${i ? "L" : "M"}${(i / (points.length - 1) * 100).toFixed(1)} ${(22 - 20 * v / most).toFixed(1)}`).join("");
	return svg("svg", { viewBox: "0 0 100 24", preserveAspectRatio: "none", "aria-hidden": "true" }, svg("path", { class: "spark", d }));
}
