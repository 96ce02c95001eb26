// history.js: plots of the last hour, out of what hosts remember; before that came, out of what this tab has seen.

import { get } from "./api.js";
import { h } from "./dom.js";
import { age, number, rate } from "./format.js";
import { plot } from "./plot.js";
import { state, wants } from "./state.js";

const HOUR_MS = 3600000;

// The points of all hosts, minute by minute: rates and counts add up, of latencies the highest is told.
function merged(history) {
	const minutes = new Map();
	for (const host of history.hosts || [])
		for (const point of host.points || []) {
			const at = Math.round(point.at_ms / 60000) * 60000;
			const sum = minutes.get(at) || { at };
			for (const name of ["done", "failed", "waiting", "running"])
				sum[name] = (sum[name] || 0) + (point[name] || 0);
			for (const name of ["wait_p50_ms", "wait_p99_ms"])
				if (point[name] !== null && point[name] !== undefined)
					sum[name] = Math.max(sum[name] || 0, point[name]);
			minutes.set(at, sum);
		}
	return [...minutes.values()].sort((a, b) => a.at - b.at);
}

export function hourPlots() {
	const { data } = wants("history", () => get("/v1/history"));
	const points = data ? merged(data) : [];
	const seen = points.length > 1 ? points : state.samples.map((s) => ({ ...s }));
	const to = state.at;
	const from = points.length > 1 ? Math.max(to - HOUR_MS, Math.min(points[0].at, to - 600000)) : Math.min(to - 120000, seen[0]?.at || to);
	const gapMs = points.length > 1 ? 150000 : 15000;
	const line = (name, field) => ({ name, points: seen.filter((p) => p.at >= from).map((p) => [p.at, p[field] ?? null]) });
	const hasWaits = seen.some((p) => p.wait_p50_ms !== undefined);
	return h("div", { class: "plots" },
		plot({ id: "rates", title: "Tasks per second", show: rate, from, to, gapMs, series: [line("done", "done"), line("failed", "failed")] }),
		hasWaits
			? plot({ id: "waits", title: "Wait before the start", show: age, isLog: true, from, to, gapMs, series: [line("p50", "wait_p50_ms"), line("p99", "wait_p99_ms")] })
			: plot({ id: "oldest", title: "Age of the oldest waiting", show: age, from, to, gapMs, series: [line("oldest", "oldest_ms")] }),
		plot({ id: "backlog", title: "Waiting and running tasks", show: number, isWhole: true, from, to, gapMs, series: [line("waiting", "waiting"), line("running", "running")] }));
}
