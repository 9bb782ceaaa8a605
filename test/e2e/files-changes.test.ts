import { type ChildProcess, fork } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "vitest";
import { freePorts } from "../free-ports.js";

/** A follower of a folder over HTTP, while nodes are killed. */

const script = fileURLToPath(new URL("files-node.mjs", import.meta.url));
const names = ["a", "b", "c"] as const;
type Name = (typeof names)[number];

let root = "";
const processes = new Map<Name, ChildProcess>();
const urls = new Map<Name, string>();
let start: (name: Name) => void;

afterEach(async () => {
  for (const child of processes.values()) child.kill("SIGKILL");
  await rm(root, { recursive: true, force: true });
});

async function startAll(): Promise<void> {
  root = await mkdtemp(join(tmpdir(), "leasehold-changes-"));
  const ports = await freePorts(9);
  const addresses = (from: number) =>
    Object.fromEntries(names.map((name, index) => [name, `127.0.0.1:${ports[from + index]}`]));
  const [members, nodes] = [addresses(0), addresses(3)];
  start = (name) => {
    const http = ports[6 + names.indexOf(name)]!;
    urls.set(name, `http://127.0.0.1:${http}`);
    const orders = { node: name, members, nodes, folder: join(root, name), ttl: "1500ms", http };
    processes.set(name, fork(script, [JSON.stringify(orders)], { stdio: "inherit" }));
  };
  for (const name of names) start(name);
}

const anyUrl = (): string => urls.get(names[Math.floor(Math.random() * names.length)]!)!;

/** Writes a file. Resolves with its version, or with `undefined` if the outcome is uncertain. */
async function put(path: string): Promise<string | undefined> {
  try {
    const signal = AbortSignal.timeout(8_000);
    const headers = { "leasehold-make-folders": "1" };
    const how = { method: "PUT", body: path, headers, signal };
    const { status, headers: given } = await fetch(`${anyUrl()}/${path}`, how);
    return status === 201 ? given.get("etag")!.replaceAll('"', "") : undefined;
  } catch {
    return undefined;
  }
}

interface Told {
  readonly id: string;
  readonly what: string;
  readonly path: string;
  readonly version?: string;
}

/**
 * Follows the changes at one node for a while, from the last id on. A change that was cut off halfway doesn't
 * count.
 */
async function follow(url: string, told: Told[], lastId: { is: string }, ms: number): Promise<void> {
  try {
    const { status, body } = await fetch(`${url}/d`, {
      headers: { accept: "text/event-stream", ...(lastId.is !== "" && { "last-event-id": lastId.is }) },
      signal: AbortSignal.timeout(ms),
    });
    if (status !== 200) return;
    let text = "";
    for await (const chunk of body!.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        const event = text.slice(0, end);
        text = text.slice(end + 2);
        const id = /^id: (.*)$/m.exec(event)?.[1];
        if (id === undefined) continue;
        const data = /^data: (.*)$/m.exec(event)?.[1];
        lastId.is = id;
        if (data !== undefined) told.push({ id, ...(JSON.parse(data) as Omit<Told, "id">) });
      }
    }
  } catch {
    // The node has died, or it is time to use another one.
  }
}

async function primaryOfNames(): Promise<Name | undefined> {
  for (const name of names) {
    const status = await fetch(`${urls.get(name)!}/`).then(
      (answer) => answer.json() as Promise<{ primaries: { path: string }[] }>,
      () => undefined,
    );
    if (status?.primaries.some(({ path }) => path === "names") === true) return name;
  }
  return undefined;
}

test("a follower sees each acknowledged file once, in order, though the primary and its node are killed", async () => {
  await startAll();
  while ((await put("d/begin")) === undefined) await sleep(100);
  const told: Told[] = [];
  const lastId = { is: "" };
  while (lastId.is === "") await follow(urls.get("a")!, told, lastId, 500);
  expect(told).toEqual([]);
  const over = new AbortController();
  const acknowledged: [path: string, version: string][] = [];
  const writing = (async () => {
    for (let at = 0; !over.signal.aborted; at += 1) {
      const path = `d/f${at}`;
      const version = await put(path);
      if (version !== undefined) acknowledged.push([path, version]);
      await sleep(10);
    }
  })();
  const following = (async () => {
    for (let at = 0; !over.signal.aborted; at += 1)
      await follow(urls.get(names[at % 3]!)!, told, lastId, 700);
  })();
  await sleep(800);
  const victim = (await primaryOfNames())!;
  const before = acknowledged.length;
  processes.get(victim)!.kill("SIGKILL");
  await sleep(3_000);
  start(victim);
  while (acknowledged.length < before + 10) await sleep(100);
  over.abort();
  await Promise.all([writing, following]);
  const last = acknowledged.at(-1)![0];
  for (let at = 0; !told.some(({ path }) => path === last) && at < 30; at += 1)
    await follow(urls.get(names[at % 3]!)!, told, lastId, 700);
  const places = told.map(({ id }) => Number.parseInt(id.split("-")[1]!, 36));
  expect(places).toEqual(places.toSorted((one, other) => one - other));
  expect(new Set(places).size).toBe(places.length);
  const versions = new Map(acknowledged);
  const found = told.filter(({ what, path, version }) => {
    expect(what).toBe("created");
    return versions.get(path) === version;
  });
  expect(found.map(({ path }) => path)).toEqual(acknowledged.map(([path]) => path));
  expect(told.length).toBe(new Set(told.map(({ path }) => path)).size);
}, 60_000);
