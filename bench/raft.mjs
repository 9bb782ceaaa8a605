// Three replicas of the log in one process, without disks and sockets: the cost of the state machine itself.
// node bench/raft.mjs [entries in a batch] [bytes in an entry] (after `npm run build`)
import { performance } from "node:perf_hooks";
import { founding } from "../packages/core/dist/raft/options.js";
import { Raft } from "../packages/core/dist/raft/raft.js";

const batch = Number(process.argv[2] ?? 64);
const bytes = Number(process.argv[3] ?? 128);
const seconds = 3;
const keptEntries = 10_000;

const ids = [1n, 2n, 3n];
const rafts = new Map(
  ids.map((id) => [id, new Raft({ id, recovered: founding(ids), random: { next: () => Number(id) / 10 } })]),
);
const compactAt = new Map(ids.map((id) => [id, keptEntries]));
const network = [];
let applied = 0;

function drain(id, raft) {
  for (let ready = raft.ready(); ready !== undefined; ready = raft.ready()) {
    network.push(...ready.early);
    if (ready.persist !== undefined) raft.persisted(ready.persist.sequence);
    network.push(...ready.messages);
    const last = ready.committed.at(-1);
    if (last === undefined) continue;
    raft.applied(last.index);
    if (id === 1n) applied += ready.committed.length;
    if (last.index < compactAt.get(id)) continue;
    raft.compact(raft.snapshotMeta(last.index), keptEntries);
    compactAt.set(id, last.index + keptEntries);
  }
}

function deliver() {
  for (let next = 0; next < network.length; next += 1) {
    const message = network[next];
    const raft = rafts.get(message.to);
    raft.step(message);
    drain(message.to, raft);
  }
  network.length = 0;
}

const leader = rafts.get(1n);
for (let tick = 0; tick < 20 && leader.status().role !== "leader"; tick += 1) {
  leader.tick();
  drain(1n, leader);
  deliver();
}

const data = Array.from({ length: batch }, () => new Uint8Array(bytes));
const begin = performance.now();
applied = 0;
while (performance.now() - begin < seconds * 1_000) {
  const proposed = leader.propose(data);
  if (!proposed.accepted) throw new Error(proposed.reason);
  drain(1n, leader);
  deliver();
}
const rate = applied / ((performance.now() - begin) / 1_000);
console.log(
  `batches of ${batch} × ${bytes} bytes: ${Math.round(rate).toLocaleString("en")} entries a second, committed and applied by three`,
);
