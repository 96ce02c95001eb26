// history.js: plots of what this tab has seen.

import { h } from "./dom.js";
import { age, number, rate } from "./format.js";
import { plot } from "./plot.js";
import { state } from "./state.js";

const GAP_MS = 15000;

export function plots() {
	const to = state.at;
	const from = Math.min(to - 120000, state.samples[0]?.at || to);
	const line = (name, field) => ({ name, points: state.samples.map((p) => [p.at, p[field] ?? null]) });
	const shared = { from, to, gapMs: GAP_MS };
	return h("div", { class: "plots" },
		plot({ ...shared, id: "rates", title: "Tasks per second", show: rate, series: [line("done", "done"), line("failed", "failed")] }),
		plot({ ...shared, id: "oldest", title: "Age of the oldest waiting", show: age, series: [line("oldest", "oldest_ms")] }),
		plot({ ...shared, id: "backlog", title: "Waiting and running tasks", show: number, isWhole: true, series: [line("waiting", "waiting"), line("running", "running")] }));
}
