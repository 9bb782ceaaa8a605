// One node of replicated files, in a process of its own, with a member of Flease in it. It runs its parent's
// requests one after another.
import { once } from "node:events";
import { closeSync, fdatasyncSync, openSync, readSync, writeSync } from "node:fs";
import { pipeline } from "node:stream/promises";
import { startMember } from "leasehold";
import { openBlockDirectory, readStream, startFiles, writeStream } from "@leasehold/files";

const { id, members, nodes, folder, ttl, timing, blockSize } = JSON.parse(process.argv[2]);
const member = await startMember({ id, members, ...timing });
await member.ready();
const store = await openBlockDirectory(folder);
const files = await startFiles({
  node: id,
  nodes,
  leases: member.leases,
  store,
  ttl,
  blockSize,
  idle: "30m",
});
const content = Buffer.alloc(4 * 2 ** 20);
for (let at = 0; at < content.length; at += 4) content.writeUInt32LE((at * 2_654_435_761) % 2 ** 32, at);

/** Runs operations one after another for `forMs`, with `size` bytes each within `span`. */
async function loop(operation, { size, span, random, forMs }) {
  const timesUs = [];
  const places = span / size;
  const untilMs = performance.now() + forMs;
  const startedMs = performance.now();
  for (let count = 0; performance.now() < untilMs; count += 1) {
    const place = random ? Math.floor(Math.random() * places) : count % places;
    const fromMs = performance.now();
    await operation(place * size, size);
    timesUs.push((performance.now() - fromMs) * 1_000);
  }
  const seconds = (performance.now() - startedMs) / 1_000;
  timesUs.sort((a, b) => a - b);
  const at = (q) => timesUs[Math.floor((timesUs.length - 1) * q)];
  return { bytesPerSecond: (timesUs.length * size) / seconds, medianUs: at(0.5), lateUs: at(0.99) };
}

const part = (offset, size) => content.subarray(offset % (content.length - size + 1)).subarray(0, size);

const tasks = {
  async replicated({ path, reads, ...how }) {
    const file = await files.open(path, { create: "missing" });
    return loop(
      (offset, size) => (reads ? file.read(offset, size) : file.write(offset, part(offset, size))),
      how,
    );
  },
  /** The same operations on a local file; an fdatasync follows each write. */
  async local({ path, reads, ...how }) {
    const fd = openSync(path, "a+") && openSync(path, "r+");
    const into = Buffer.alloc(how.size);
    const measured = await loop(async (offset, size) => {
      if (reads) return void readSync(fd, into, 0, size, offset);
      writeSync(fd, part(offset, size), 0, size, offset);
      fdatasyncSync(fd);
    }, how);
    closeSync(fd);
    return measured;
  },
  /** Times one round trip to another node: asks for the size of a file whose primary is there. */
  async roundTrip({ path }) {
    const file = await files.open(path);
    const timesMs = [];
    for (let count = 0; count < 200; count += 1) {
      const fromMs = performance.now();
      await file.stat();
      timesMs.push(performance.now() - fromMs);
    }
    return timesMs.toSorted((a, b) => a - b)[100];
  },
  /** Writes for `forMs`, and returns the times of the acknowledgements. */
  async writeOn({ path, forMs }) {
    const file = await files.open(path);
    const acknowledged = [];
    const untilMs = Date.now() + forMs;
    while (Date.now() < untilMs) {
      await file.write(0, content.subarray(0, 4_096)).then(
        () => acknowledged.push(Date.now()),
        () => {},
      );
    }
    return acknowledged;
  },
  async create({ prefix, count }) {
    const startedMs = performance.now();
    let next = 0;
    const worker = async () => {
      while (next < count) {
        const file = await files.open(`${prefix}/${next++}`, { create: "missing" });
        await file.write(0, content.subarray(0, 100));
      }
    };
    await Promise.all(Array.from({ length: 32 }, worker));
    return (performance.now() - startedMs) / 1_000;
  },
  /**
   * The remaining time, in ms, of the lease of the only file that is written in place and has its primary
   * here.
   */
  async leaseOf() {
    const { path } = files.status().primaries.find((primary) => primary.path.startsWith("live/"));
    const hint = await member.leases.holder(`files/${path}`);
    return { remainingMs: hint.remainingMs };
  },
  async put({ path, bytes }) {
    const startedMs = performance.now();
    const file = await files
      .open(path, { create: "replace" })
      .catch(() => files.open(path, { create: "missing" }));
    const chunks = async function* () {
      for (let sent = 0; sent < bytes; sent += content.length) yield content;
    };
    await pipeline(chunks, writeStream(file));
    return (performance.now() - startedMs) / 1_000;
  },
  async get({ path }) {
    const startedMs = performance.now();
    let [bytes, wrong] = [0, 0];
    for await (const chunk of readStream(await files.open(path))) {
      const from = bytes % content.length;
      if (from + chunk.length <= content.length && !chunk.equals(content.subarray(from, from + chunk.length)))
        wrong += 1;
      bytes += chunk.length;
    }
    return { seconds: (performance.now() - startedMs) / 1_000, bytes, wrong };
  },
  async status() {
    const { user, system } = process.cpuUsage();
    const { rss, heapUsed } = process.memoryUsage();
    const { counters, primaries } = files.status();
    return {
      counters,
      primaries: primaries.length,
      rss,
      heapUsed,
      cpuUs: user + system,
      resources: member.status().resources,
    };
  },
};

process.on("message", async ({ number, task, ...how }) => {
  try {
    process.send({ number, value: await tasks[task](how) });
  } catch (error) {
    process.send({ number, error: `${task}: ${error?.stack ?? error}` });
  }
});
process.on("disconnect", () => process.exit());
process.send("ready");
await once(process, "disconnect");
