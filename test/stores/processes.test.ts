import { mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Running, eventually, isAlive, leasehold } from "../support/built.js";
import { FreezableFolder, canFreeze } from "../support/freezable-folder.js";
import { Arena, expectClean, random, report } from "../e2e/arena.js";
import { GuardedFile } from "./guarded-file.js";

/**
 * Real processes on three directories: holders are killed and stopped, and stores go away or hang, while the
 * holder of the lease writes to a file that checks its token. Afterwards the journals are checked: who held
 * the lease when, and which writes the file accepted.
 */

const leaseMs = 2_000;
const settings = `ttlMax=${leaseMs}ms&maxStoreLatency=300ms`;
/** The delay that a busy machine may add anywhere. */
const noiseMs = 1_000;

let root: string;
let arena: Arena;
let file: GuardedFile;

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), "leasehold-farm-"));
  for (const store of ["a", "b", "c"]) mkdirSync(join(root, store));
  arena = await Arena.start({ members: [], guard: (folder, run) => (file = new GuardedFile(folder, run)) });
  arena.endpoints.push(
    `delta+file://${["a", "b", "c"].map((store) => join(root, store)).join(",")}?${settings}`,
  );
});

afterEach(async () => {
  await arena.close();
  rmSync(root, { recursive: true, force: true });
});

function addWriters(count: number): void {
  arena.addHolders(count, { resources: ["file"], holdMs: [30_000, 30_000], writes: true });
}

/** Checks the journals of the run. The file must have been written to. */
async function judge() {
  const history = await arena.judge();
  expectClean(history);
  expect(file.accepted).toBeGreaterThan(100);
  return history;
}

test("another takes over within the promised time when holders are killed again and again", async () => {
  addWriters(3);
  for (let kills = 0; kills < 5; kills++) {
    await sleep(random(0, leaseMs));
    await arena.replaceHolderOf("file");
    addWriters(1);
  }
  const takeoverMsMax = await arena.takeoverMsMax();
  const history = await judge();
  const kills = history.faults.find(({ kind }) => kind === "killed")!;
  report(
    `without a holder after ${kills.interrupted} kills: at most ${kills.longestMs?.toFixed()} ms; promised: ${takeoverMsMax.toFixed()} ms`,
  );
  expect(kills.interrupted).toBe(5);
  expect(kills.longestMs).toBeLessThan(takeoverMsMax + noiseMs);
});

test("a holder that is stopped past its expiry writes nothing after its successor", async () => {
  addWriters(3);
  for (let stops = 0; stops < 5; stops++) {
    const holder = await arena.holderOf("file");
    const { losses } = holder;
    await sleep(random(0, leaseMs));
    arena.stop(holder.pid);
    const successor = await arena.holderOf("file", 5 * leaseMs);
    expect(successor.name).not.toBe(holder.name);
    await sleep(random(0, 300));
    arena.continue(holder.pid);
    await eventually("it finds its lease lost", () => holder.losses > losses, leaseMs);
  }
  const history = await judge();
  expect(history.lossesFoundAfterPause).toBe(5);
});

describe("an unavailable store", () => {
  test("costs no holder its lease while the others are available, and is used again when it is back", async () => {
    addWriters(2);
    const first = await arena.holderOf("file");
    const away = (store: string) => renameSync(join(root, store), join(root, `${store}.away`));
    const back = (store: string) => renameSync(join(root, `${store}.away`), join(root, store));
    for (const store of ["a", "b", "c"]) {
      away(store);
      await sleep(1.5 * leaseMs);
      expect([first.losses, first.holding.has("file")]).toEqual([0, true]);
      back(store);
      await sleep(leaseMs);
    }
    // With two stores away no lease can be kept for long. Afterwards leases continue.
    away("a");
    away("b");
    await sleep(2 * leaseMs);
    expect(first.holding.has("file")).toBe(false);
    back("a");
    back("b");
    await arena.holderOf("file", 10 * leaseMs);
    await arena.replaceHolderOf("file");
    await judge();
  });

  test("is not used when an empty directory has replaced it", async () => {
    addWriters(2);
    const first = await arena.holderOf("file");
    // Holders write to it meanwhile.
    rmSync(join(root, "b"), { recursive: true, maxRetries: 20, retryDelay: 5 });
    mkdirSync(join(root, "b"));
    await sleep(2 * leaseMs);
    expect(first.losses).toBe(0);
    await arena.replaceHolderOf("file");
    await judge();
  });
});

test("leases stay exclusive while holders are killed and stopped, and stores go away and come back", async () => {
  addWriters(4);
  const end = performance.now() + 25_000;
  for (let store = 0; performance.now() < end; store++) {
    const name = join(root, ["a", "b", "c"][store % 3]!);
    const victim = await arena.holderOf("file", 10 * leaseMs);
    renameSync(name, `${name}.away`);
    await sleep(random(0, 800));
    if (Math.random() < 0.4) {
      arena.kill(victim.pid);
      addWriters(1);
    } else {
      arena.stop(victim.pid);
    }
    await sleep(random(0, 1.5 * leaseMs));
    renameSync(`${name}.away`, name);
    arena.continueAll();
  }
  await arena.replaceHolderOf("file");
  const history = await judge();
  expect(history.tenures.length).toBeGreaterThan(5);
});

describe.skipIf(!canFreeze)("a store that hangs (needs root, to mount and freeze a file system)", () => {
  let store: FreezableFolder;

  beforeEach(() => {
    store = new FreezableFolder(join(root, "b"));
  });

  afterEach(() => store.unmount());

  test("costs no holder its lease: operations on it hang, and those on the others continue", async () => {
    addWriters(3);
    const first = await arena.holderOf("file");
    store.freeze();
    try {
      await sleep(3 * leaseMs);
      expect(first.losses).toBe(0);
      // A successor has two working stores, too.
      arena.kill(first.pid);
      const second = await arena.holderOf("file", 5 * leaseMs);
      expect(second.name).not.toBe(first.name);
      arena.stop(second.pid);
      await arena.holderOf("file", 5 * leaseMs);
      arena.continue(second.pid);
    } finally {
      store.thaw();
    }
    await sleep(leaseMs);
    await arena.replaceHolderOf("file");
    await judge();
  });

  test("ends no command late: run, status and get have their exit codes while it hangs", async () => {
    const endpoints = ["--endpoints", arena.endpoints[0]!, "--timeout", "2s"];
    const first = leasehold([
      "run",
      "job",
      ...endpoints,
      "--",
      "sh",
      "-c",
      "echo begun >&2; sleep 4; echo done; exit 3",
    ]);
    const frozen: Running[] = [first];
    await eventually("the job runs", () => first.stderr().includes("begun"));
    store.freeze();
    try {
      // The operation in flight in the store's process never ends, but the outputs are closed.
      expect(await first.finished).toMatchObject({ code: 3, stdout: "done\n" });
      for (const words of [["status"], ["get", "job"], ["run", "job", "--wait", "10s"]]) {
        const end = words[0] === "run" ? ["--", "sh", "-c", "exit 4"] : [];
        const next = leasehold([...words, ...endpoints, ...end]);
        frozen.push(next);
        expect({ words, ...(await next.finished) }).toMatchObject({ code: words[0] === "run" ? 4 : 0 });
      }
    } finally {
      store.thaw();
    }
    const left = (): boolean => frozen.some(({ pid }) => isAlive(pid));
    await eventually("all have ended", () => !left());
  });
});
