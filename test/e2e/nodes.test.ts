import { type ChildProcess, execFileSync, fork, spawn } from "node:child_process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { delimiter, join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { freePorts } from "../free-ports.js";
import { dist, eventually, mainPath } from "../support/built.js";
import { report } from "./arena.js";

/**
 * Members and clients on several versions of Node side by side. `npm run test:slow -- nodes` chooses the
 * versions.
 */

const binaries = (process.env["LEASEHOLD_NODES"] ?? "").split(delimiter).filter((path) => path !== "");
const clientPath = fileURLToPath(new URL("clocked.mjs", import.meta.url));

interface News {
  readonly type: "started" | "acquired" | "failed" | "lost";
  readonly token?: string;
}

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});

function startMember(binary: string, id: string, all: readonly string[]): () => boolean {
  const members = all.flatMap((member) => ["--member", member]);
  const settings = ["--ttl-max", "2s", "--max-clock-skew", "20ms", "--rpc-timeout", "150ms", "-o", "ndjson"];
  const child = spawn(binary, [mainPath, "peer", "--id", id, ...members, ...settings], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (said += text));
  return () => said.includes('"ready"');
}

describe.runIf(binaries.length > 1)("several versions of Node", () => {
  test("a member and a client on each, contending for one resource: it passes on, with rising tokens", async () => {
    const ids = ["a", "b", "c", "d", "e"].slice(0, Math.max(3, binaries.length));
    const ports = await freePorts(ids.length);
    const all = ids.map((id, index) => `${id}=127.0.0.1:${ports[index]}`);
    const binaryAt = (index: number): string => binaries[index % binaries.length]!;
    report(binaries.map((path) => execFileSync(path, ["--version"]).toString().trim()).join(", "));
    const ready = ids.map((id, index) => startMember(binaryAt(index), id, all));
    await eventually("all members are ready", () => ready.every((one) => one()), 30_000);
    const taken: { client: number; token: bigint }[] = [];
    const clients = ids.map((_, index) => {
      const orders = {
        library: pathToFileURL(join(dist, "index.js")).href,
        urls: ports.map((port) => `flease://127.0.0.1:${port}`),
        name: `client-${index}`,
        resource: "shared",
      };
      const child = fork(clientPath, [JSON.stringify(orders)], { execPath: binaryAt(index) });
      children.push(child);
      child.on("message", ({ type, token }: News) => {
        if (type === "acquired") taken.push({ client: index, token: BigInt(token!) });
      });
      return child;
    });
    // The holder is killed until every version has held the resource.
    for (let tenures = 1; tenures <= ids.length; tenures++) {
      await eventually(`tenure ${tenures}`, () => taken.length >= tenures, 20_000);
      clients[taken.at(-1)!.client]!.kill("SIGKILL");
    }
    expect(new Set(taken.map(({ client }) => client)).size).toBe(ids.length);
    const tokens = taken.map(({ token }) => token);
    expect(tokens).toEqual(tokens.toSorted((a, b) => (a < b ? -1 : 1)));
  });
});
