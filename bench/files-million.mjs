// A million files: names at their primary, and contents on one node's disk: `npm run bench -- files million`.
// Names are created by copying a folder whose files share contents; contents are written to a disk without
// names. A node has both.
import { fork } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { openBlockDirectory } from "@leasehold/files";
import { startCluster } from "./files-whole.mjs";
import { rowOf } from "./results.mjs";

const count = Number(process.env["BENCH_FILES"] ?? 1_000_000);
/** The most files that one copy creates, besides their folder. */
const perFolder = 7_999;
const atOnce = 64;
const script = fileURLToPath(import.meta.url);

const rssOf = (pid) =>
  1_024 * Number(/VmRSS:\s*(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0);

async function each(total, work) {
  let next = 0;
  const one = async () => {
    while (next < total) await work(next++);
  };
  await Promise.all(Array.from({ length: atOnce }, one));
}

async function ask(port, method, path, headers = {}, body = undefined) {
  const asked = { method, headers, body };
  for (let tries = 1; ; tries += 1) {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, asked);
    const text = await answer.text();
    if (answer.ok) return text;
    if (tries === 5) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    await sleep(200);
  }
}

/** The process id of the node that serves on this port. */
function pidAt(port) {
  return readdirSync("/proc").find((name) => {
    try {
      return (
        /^\d+$/.test(name) &&
        readFileSync(`/proc/${name}/cmdline`, "utf8").includes(["--http", `127.0.0.1:${port}`, ""].join("\0"))
      );
    } catch {
      return false;
    }
  });
}

async function names(room, add) {
  const cluster = await startCluster(room);
  const primary = await cluster.primaryOfNames();
  const other = cluster.ports.find((port) => port !== primary);
  await ask(primary, "MKCOL", "/0");
  await each(perFolder, (at) => ask(primary, "PUT", `/0/file-${at}`, {}, "content"));
  const before = rssOf(pidAt(primary));
  const folders = Math.ceil(count / perFolder);
  for (let at = 1; at < folders; at += 1)
    await ask(primary, "COPY", "/0", { destination: `http://127.0.0.1:${primary}/${at}`, depth: "infinity" });
  const now = await cluster.primaryOfNames();
  const more = { files: folders * perFolder };
  const system = "leasehold, three nodes";
  add(rowOf("files: a million names: their primary has, rss", system, "MB", [rssOf(pidAt(now)) / 1e6], more));
  add(rowOf("files: a million names: of this before the last 99 %", system, "MB", [before / 1e6], more));
  await ask(other === now ? primary : other, "GET", `/${folders - 1}/file-1`);
  process.kill(Number(pidAt(now)), "SIGKILL");
  const fromMs = performance.now();
  const last = `/${folders - 1}/file-1`;
  await ask(
    cluster.ports.find((port) => port !== now),
    "GET",
    last,
  );
  const seconds = (performance.now() - fromMs) / 1_000;
  add(rowOf("files: a million names: the next primary serves after", system, "s", [seconds], more));
  await cluster.stop();
}

async function inChild(task, folder) {
  const child = fork(script, [task, folder]);
  const [told] = await once(child, "message");
  child.disconnect();
  await once(child, "exit");
  return told;
}

async function contents(room, add) {
  const folder = room.folder("million");
  const { seconds: filling } = await inChild("fill", folder);
  const { seconds, rss } = await inChild("open", folder);
  const more = { files: count, fillingSeconds: Math.round(filling) };
  const system = "leasehold, one disk";
  add(rowOf("files: a million contents of 1 kB: the disk is open after", system, "s", [seconds], more));
  add(rowOf("files: a million contents of 1 kB: and has, rss", system, "MB", [rss / 1e6], more));
}

export async function million(room, add) {
  await contents(room, add);
  await names(room, add);
}

const tasks = {
  async fill(folder) {
    const store = await openBlockDirectory(folder);
    const bytes = Buffer.alloc(1_000, 7);
    await store.writeNode("{}");
    let next = 0;
    const one = async () => {
      while (next < count) {
        const path = `content/${(next++).toString(36).padStart(22, "0")}`;
        await store.create(path, "1");
        await store.writeBlock(path, 0, "1.1", bytes);
        await store.sync(path);
      }
    };
    await Promise.all(Array.from({ length: 2_000 }, one));
    await store.close();
  },
  async open(folder) {
    await openBlockDirectory(folder);
  },
};

const [, main, task, folder] = process.argv;
if (main === script && task in tasks) {
  const fromMs = performance.now();
  await tasks[task](folder);
  process.send({ seconds: (performance.now() - fromMs) / 1_000, rss: process.memoryUsage.rss() });
  await once(process, "disconnect");
  process.exit();
}
