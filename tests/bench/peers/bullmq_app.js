// The same work on BullMQ:  node bullmq_app.js work  works;  node bullmq_app.js TASKS  produces.
// REDIS_SOCKET: the server.  DONE: a file that grows by a byte with each task.  NODE_PATH: where bullmq is.
const fs = require("fs");
const { Queue, Worker } = require("bullmq");
const IORedis = require("ioredis");

const connection = new IORedis({ path: process.env.REDIS_SOCKET, maxRetriesPerRequest: null });

async function produce(count) {
  const queue = new Queue("bench", { connection });
  const data = { payload: "0".repeat(100) };
  const opts = { removeOnComplete: true, removeOnFail: true };
  for (let sent = 0; sent < count; sent += 1000)
    await queue.addBulk(Array.from({ length: 1000 }, () => ({ name: "noop", data, opts })));
  await queue.close();
  connection.disconnect();
}

if (process.argv[2] === "work") {
  const fd = fs.openSync(process.env.DONE, "a");
  new Worker("bench", async () => { fs.writeSync(fd, "x"); }, { connection, concurrency: 100 });
} else {
  produce(Number(process.argv[2]));
}
