import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  type Running,
  childrenOf,
  eventually,
  isAlive,
  leasehold,
  mainPath,
} from "../../../../../test/support/built.js";
import { FreezableFolder, canFreeze } from "../../../../../test/support/freezable-folder.js";

// The process behind, started as by the front, but with a front that has already gone.

test("a process behind ends silently if its front is killed during its start", async () => {
  const words = [mainPath, "ls", "--endpoints", "delta+file:///nowhere"];
  const behind = spawn(process.execPath, words, {
    argv0: "leasehold-behind",
    stdio: ["ignore", "pipe", "pipe", "pipe"],
  });
  let said = "";
  for (const output of [behind.stdout, behind.stderr])
    output!.setEncoding("utf8").on("data", (text: string) => (said += text));
  // Less than Node takes to start.
  behind.stdio[3]!.destroy();
  const [code, signal] = await new Promise<[number | null, string | null]>((resolve) => {
    behind.on("close", (...how) => resolve(how));
  });
  expect({ code, signal, said }).toEqual({ code: null, signal: "SIGKILL", said: "" });
});

describe.skipIf(!canFreeze)("on a frozen file system (needs root, to mount and freeze one)", () => {
  const commands = [["ls"], ["get", "job"], ["doctor", "--duration", "10m"]];
  const signals = ["SIGTERM", "SIGINT"] as const;

  test.each(signals)("%s ends ls, get and doctor, and readers of their output", async (signal) => {
    const store = new FrozenStore();
    for (const words of commands) {
      const { front, behind } = await store.startAndHang(words);
      front.process.kill(signal);
      // Resolves when the process has exited and its outputs are closed.
      const { stderr, ...end } = await front.finished;
      expect({ words, ...end }).toMatchObject({ words, code: null, signal });
      expect(stderr).toContain(`process ${behind} still waits for a file system`);
    }
    store.thaw();
    await eventually("the processes behind end", () => !store.behind.some(isAlive));
  });

  test("hold reports no release that cannot have arrived", async () => {
    const store = new FrozenStore();
    store.thaw();
    const hold = leasehold(["hold", "job", "--endpoints", store.endpoint]);
    await eventually("it holds", () => hold.stdout().includes("held, token"));
    store.freeze();
    hold.process.kill("SIGTERM");
    const { code, stdout, stderr } = await hold.finished;
    expect({ code, stdout }).toEqual({ code: 69, stdout: expect.not.stringContaining("released") as string });
    expect(stderr).toMatch(
      /interrupted; the release of job could not be confirmed .* ends by itself in \d+\.\d s\n$/,
    );
  });

  test.each(commands.map((words) => [words[0]!, words] as const))(
    "a second signal ends %s at once",
    async (_name, words) => {
      const store = new FrozenStore();
      const { front, behind } = await store.startAndHang(words);
      front.process.kill("SIGTERM");
      await eventually("the process behind is dying", () => !isAlive(behind));
      front.process.kill("SIGINT");
      // The first signal ends the front if it waits.
      expect(await front.finished).toMatchObject({ code: null, signal: "SIGINT" });
    },
  );
});

/** A store on a file system of its own that is frozen until the test is over. */
class FrozenStore {
  readonly behind: number[] = [];
  readonly #folder: FreezableFolder;

  constructor() {
    const root = mkdtempSync(join(tmpdir(), "leasehold-frozen-"));
    onTestFinished(() => rmSync(root, { recursive: true, force: true }));
    this.#folder = new FreezableFolder(join(root, "store"));
    onTestFinished(() => this.#folder.unmount());
    this.freeze();
  }

  freeze(): void {
    this.#folder.freeze();
  }

  thaw(): void {
    this.#folder.thaw();
  }

  /** The address of leases of half a minute on that file system. */
  get endpoint(): string {
    return `delta+file://${this.#folder.path}?ttlMax=30s&maxStoreLatency=500ms`;
  }

  /** Resolves when the process behind is stuck in an operation that never ends. */
  async startAndHang(words: readonly string[]): Promise<{ front: Running; behind: number }> {
    const front = leasehold([
      ...words,
      "--endpoints",
      `delta+file://${this.#folder.path}`,
      "--timeout",
      "10m",
    ]);
    const behind = await eventually(`${words[0]} waits for the store`, () =>
      childrenOf(front.pid).find(waitsForThaw),
    );
    this.behind.push(behind);
    return { front, behind };
  }
}

function waitsForThaw(pid: number): boolean {
  try {
    return readdirSync(`/proc/${pid}/task`).some((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/wchan`, "utf8").includes("percpu_rwsem_wait"),
    );
  } catch {
    return false;
  }
}
