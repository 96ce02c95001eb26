// history.js: plots of the last hour, out of what all hosts remember; what this tab has seen goes on from there.

import { get } from "./api.js";
import { h } from "./dom.js";
import { age, number, rate } from "./format.js";
import { plot } from "./plot.js";
import { state, wants } from "./state.js";

const HOUR_MS = 3600000;
const MINUTE_MS = 60000;
// What a point calls it, and how it is called here, as in the samples of this tab.
const SUMS = { done_per_second: "done", failed_per_second: "failed", waiting: "waiting", running: "running", seats_used: "seats_used", seats: "seats" };
const WORST = { wait_p50_seconds: "wait_p50", wait_p99_seconds: "wait_p99" };

// The points of all hosts, minute by minute: rates and counts add up, of waits the longest is told.
function merged(history) {
	const minutes = new Map();
	for (const host of history.hosts)
		for (const point of host.points) {
			const named = Object.fromEntries(history.columns.map((name, i) => [name, point[i]]));
			const at = Math.round(named.at_ms / MINUTE_MS) * MINUTE_MS;
			const sum = minutes.get(at) || { at };
			for (const [theirs, ours] of Object.entries(SUMS))
				sum[ours] = (sum[ours] || 0) + named[theirs];
			for (const [theirs, ours] of Object.entries(WORST))
				if (named[theirs])
					sum[ours] = Math.max(sum[ours] || 0, named[theirs] * 1000);
			minutes.set(at, sum);
		}
	return [...minutes.values()].sort((a, b) => a.at - b.at);
}

export function plots() {
	const { data } = wants("history", () => get("/v1/history"));
	const past = data ? merged(data) : [];
	// What this tab has seen is finer than a point a minute; what it has not seen the hosts remember.
	const isSeen = (at) => state.samples.some((s) => Math.abs(s.at - at) < MINUTE_MS);
	const all = [...past.filter((p) => !isSeen(p.at)), ...state.samples].sort((a, b) => a.at - b.at);
	const to = state.at;
	const from = Math.max(to - HOUR_MS, Math.min(to - 2 * MINUTE_MS, all[0]?.at || to));
	const line = (name, field, points = all) => ({ name, points: points.filter((p) => p.at >= from).map((p) => [p.at, p[field] ?? null]) });
	const shared = { from, to, gapMs: 2.5 * MINUTE_MS };
	const hasWaits = past.some((p) => p.wait_p50);
	return h("div", { class: "plots" },
		plot({ ...shared, id: "rates", title: "Tasks per second", show: rate, series: [line("done", "done"), line("failed", "failed")] }),
		hasWaits
			? plot({ ...shared, id: "waits", title: "Wait before the start", show: age, isLog: true, series: [line("p50", "wait_p50", past), line("p99", "wait_p99", past)] })
			: plot({ ...shared, id: "oldest", title: "Age of the oldest waiting", show: age, series: [line("oldest", "oldest_ms")] }),
		plot({ ...shared, id: "backlog", title: "Waiting and running tasks", show: number, isWhole: true, series: [line("waiting", "waiting"), line("running", "running")] }),
		plot({ ...shared, id: "seats", title: "Seats in use", show: number, isWhole: true, series: [line("in use", "seats_used"), line("seats", "seats")] }));
}
