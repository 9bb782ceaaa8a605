import { type ChildProcess, fork } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "vitest";
import { type FileOperations, judgeFile } from "../../packages/sim/src/files/history.js";
import { freePorts } from "../free-ports.js";

/** Three processes with replicated files on real directories and sockets, which are killed and stopped. */

const script = fileURLToPath(new URL("files-node.mjs", import.meta.url));
const names = ["a", "b", "c"] as const;
type Name = (typeof names)[number];
const paths = ["one", "two"];
const ttl = "1500ms";
/** The time limit given to each node for one call, plus slack, ms. */
const callMsMax = 9_000;

type Answer = { readonly result?: unknown; readonly error?: string };

/** One node: its process and the calls in flight. */
class Node {
  readonly #start: () => ChildProcess;
  readonly #pending = new Map<number, (answer: Answer) => void>();
  process: ChildProcess;
  #lastId = 0;

  constructor(start: () => ChildProcess) {
    this.#start = start;
    this.process = this.#listen(start());
  }

  ask(order: object): Promise<Answer> {
    return new Promise((resolve) => {
      this.#lastId += 1;
      const id = this.#lastId;
      this.#pending.set(id, resolve);
      setTimeout(() => resolve({ error: "no answer" }), callMsMax).unref();
      if (!this.process.connected) resolve({ error: "no answer" });
      else this.process.send({ ...order, id }, (error) => error && resolve({ error: "no answer" }));
    });
  }

  kill(): void {
    this.process.kill("SIGKILL");
    for (const resolve of this.#pending.values()) resolve({ error: "no answer" });
    this.#pending.clear();
  }

  restart(): void {
    this.process = this.#listen(this.#start());
  }

  #listen(child: ChildProcess): ChildProcess {
    child.on("message", (message: Answer & { id?: number }) => {
      if (message.id === undefined) return;
      this.#pending.get(message.id)?.(message);
      this.#pending.delete(message.id);
    });
    return child;
  }
}

let root = "";
const nodes = new Map<Name, Node>();

afterEach(async () => {
  for (const node of nodes.values()) node.kill();
  await rm(root, { recursive: true, force: true });
});

async function startAll(): Promise<void> {
  root = await mkdtemp(join(tmpdir(), "leasehold-files-"));
  const ports = await freePorts(6);
  const address = (index: number) => `127.0.0.1:${ports[index]}`;
  const members = Object.fromEntries(names.map((name, index) => [name, address(index)]));
  const filesNodes = Object.fromEntries(names.map((name, index) => [name, address(index + 3)]));
  for (const name of names) {
    const orders = { node: name, members, nodes: filesNodes, folder: join(root, name), ttl };
    nodes.set(name, new Node(() => fork(script, [JSON.stringify(orders)], { stdio: "inherit" })));
  }
}

/** The offsets at which files are written; each of these places is judged by itself. */
const offsets = [0, 4_096, 8_192];
const histories = new Map<string, FileOperations>(
  paths.flatMap((path) => offsets.map((offset) => [`${path} ${offset}`, []])),
);
/** A call refused with one of these was not done. */
const refusals = new Set(["NO_QUORUM", "FILE_NOT_FOUND"]);

/** Makes one call and adds it to the history of its place. Resolves with true if it was done. */
async function call(path: string, offset: number, text?: string): Promise<boolean> {
  const node = nodes.get(names[Math.floor(Math.random() * names.length)]!)!;
  const calledAt = performance.now();
  const kind = text === undefined ? "read" : "write";
  const { result, error } = await node.ask({ kind, path, offset, length: 6, text });
  const returnedAt = performance.now();
  const history = histories.get(`${path} ${offset}`)!;
  const input =
    text === undefined
      ? ({ kind: "read", offset: 0, length: 6 } as const)
      : ({ kind: "write", offset: 0, text } as const);
  if (error === undefined)
    history.push({
      input,
      output: text === undefined ? { text: result as string } : {},
      calledAt,
      returnedAt,
    });
  else if (!refusals.has(error) && text !== undefined) history.push({ input, calledAt });
  return error === undefined;
}

/**
 * Leaves out uncertain writes that nobody has read: each value is written once, so they need no position in
 * the order.
 */
function withoutUnseen(history: FileOperations): FileOperations {
  const seen = new Set(
    history.flatMap(({ output }) => (typeof output === "object" ? (output.text ?? []) : [])),
  );
  return history.filter(
    ({ input, returnedAt }) => returnedAt !== undefined || (input.kind === "write" && seen.has(input.text)),
  );
}

test("kill -9 and SIGSTOP of nodes: each file is linearizable, and nothing that was acknowledged is lost", async () => {
  await startAll();
  for (const path of paths) {
    while ((await nodes.get("a")!.ask({ kind: "create", path })).error !== undefined) await sleep(100);
    for (const offset of offsets) {
      histories
        .get(`${path} ${offset}`)!
        .push({ input: { kind: "create" }, output: {}, calledAt: 0, returnedAt: 0 });
      while (!(await call(path, offset, "begin_"))) await sleep(100);
    }
  }
  const over = new AbortController();
  let written = 0;
  let done = 0;
  const clients = paths.flatMap((path) =>
    Array.from({ length: 2 }, async () => {
      while (!over.signal.aborted) {
        const offset = offsets[Math.floor(Math.random() * offsets.length)]!;
        const text = `w${String((written += 1)).padStart(5, "0")}`;
        const ok = await call(path, offset, Math.random() < 0.5 ? undefined : text);
        if (ok) done += 1;
        await sleep(Math.random() * 150);
      }
    }),
  );
  for (let round = 0; round < 8; round += 1) {
    const victims = round === 5 ? names : [names[round % 3]!];
    await sleep(700);
    if (round % 2 === 0) for (const name of victims) nodes.get(name)!.process.kill("SIGSTOP");
    else for (const name of victims) nodes.get(name)!.kill();
    await sleep(2_200);
    if (round % 2 === 0) for (const name of victims) nodes.get(name)!.process.kill("SIGCONT");
    else for (const name of victims) nodes.get(name)!.restart();
  }
  await sleep(3_000);
  over.abort();
  await Promise.all(clients);
  for (const path of paths) for (const offset of offsets) expect(await call(path, offset)).toBe(true);
  for (const history of histories.values()) {
    const { verdict, stuckAt } = judgeFile({ operations: withoutUnseen(history), uncertain: [] });
    expect([verdict, stuckAt.slice(0, 3)]).toEqual(["linearizable", []]);
  }
  process.stderr.write(
    `files: ${done} calls were done, of ${[...histories.values()].flat().length} in the histories\n`,
  );
  expect(done).toBeGreaterThan(60);
}, 180_000);
