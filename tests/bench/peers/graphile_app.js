// The same work on graphile-worker:  node graphile_app.js work  works;  node graphile_app.js TASKS  produces.
// DATABASE_URL: the server.  DONE: a file that grows by a byte with each task.  NODE_PATH: where graphile-worker is.
const fs = require("fs");
const { makeWorkerUtils, run } = require("graphile-worker");

// As https://worker.graphile.org/docs/performance has it.
const worker = {
  connectionString: process.env.DATABASE_URL,
  concurrentJobs: 24,
  maxPoolSize: 25,
  localQueue: { size: 500 },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
};

async function produce(count) {
  const utils = await makeWorkerUtils({ preset: { worker } });
  const spec = { identifier: "noop", payload: { payload: "0".repeat(100) }, maxAttempts: 1 };
  for (let sent = 0; sent < count; sent += 1000)
    await utils.addJobs(Array.from({ length: 1000 }, () => spec));
  await utils.release();
}

async function work() {
  const fd = fs.openSync(process.env.DONE, "a");
  const runner = await run({ preset: { worker }, taskList: { noop: async () => { fs.writeSync(fd, "x"); } } });
  await runner.promise;
}

async function main() {
  if (process.argv[2] === "work") await work();
  else if (process.argv[2] === "migrate") await (await makeWorkerUtils({ preset: { worker } })).release();
  else await produce(Number(process.argv[2]));
}

main().catch((error) => { console.error(error); process.exit(1); });
