import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { CoreCluster, type Program } from "../core/support/core-cluster.js";
import type { Call, Group } from "./calls/call.js";
import { auth } from "./calls/auth.js";
import { cluster } from "./calls/cluster.js";
import { kv } from "./calls/kv.js";
import { leases } from "./calls/leases.js";
import { locks } from "./calls/locks.js";
import { watches } from "./calls/watches.js";
import { normalised } from "./normalised.js";

/** Calls of Debian's etcdctl to ours and to a real etcd: the outputs are equal, line by line. */

const groups: readonly Group[] = [...kv, ...leases, ...watches, ...locks, ...cluster, ...auth];

/** Longer than any call takes. A call that does not end by itself is ended once it has printed enough. */
const openMs = 5_000;

test("there are 150 calls or more", () => {
  expect(groups.flatMap(({ calls }) => calls).length).toBeGreaterThanOrEqual(150);
});

describe("etcdctl", () => {
  test.each(groups)("$title", async (group) => {
    await using ours = await started(group, "leasehold");
    await using etcds = await started(group, "etcd");
    const kept = [new Map<string, string>(), new Map<string, string>()] as const;
    const wrong: object[] = [];
    for (const call of group.calls.map((given) => (typeof given === "string" ? { words: given } : given))) {
      const [our, their] = await Promise.all([said(call, ours, kept[0]), said(call, etcds, kept[1])]);
      const isSame = JSON.stringify(our) === JSON.stringify(their);
      const isLate = [our, their].some(({ err }) => err.some((line) => line.startsWith("ended after")));
      if (isSame === (call.differs === undefined) && !isLate) continue;
      const { words } = call;
      wrong.push(isSame && !isLate ? { words, butIsSame: call.differs } : { words, our, their });
    }
    expect(wrong).toEqual([]);
  });
});

function started({ flags = [], servers = 1 }: Group, program: Program): Promise<CoreCluster> {
  return CoreCluster.start(servers, { program, flags });
}

interface Said {
  readonly exitCode: number | null;
  readonly out: readonly string[];
  readonly err: readonly string[];
}

async function said(call: Call, servers: CoreCluster, kept: Map<string, string>): Promise<Said> {
  const words = typeof call.words === "string" ? call.words.split(" ") : call.words;
  const filled = words.map((word) =>
    word.replaceAll(/\$([A-Z][A-Z0-9]*)\b/g, (all, name: string) => kept.get(name) ?? all),
  );
  const child = spawn("etcdctl", [`--endpoints=${servers.endpoints}`, ...filled], {
    env: { ...process.env, ETCDCTL_API: "3" },
  });
  let [out, err] = ["", ""];
  const hasEnough = () => call.lines !== undefined && out.split("\n").length > call.lines;
  child.stdout.on("data", (chunk) => {
    out += String(chunk);
    if (hasEnough()) child.kill("SIGINT");
  });
  child.stderr.on("data", (chunk) => (err += String(chunk)));
  child.stdin.on("error", () => undefined);
  if (call.lines === undefined || call.input !== undefined) child.stdin.write(call.input ?? "");
  if (call.lines === undefined) child.stdin.end();
  const timer = setTimeout(() => {
    err += `\nended after ${openMs} ms and ${out.split("\n").length - 1} lines`;
    child.kill("SIGINT");
  }, openMs);
  const [exitCode] = (await once(child, "close")) as [number | null];
  clearTimeout(timer);
  for (const [name, pattern] of Object.entries(call.keep ?? {})) {
    const found = pattern.exec(out)?.[1];
    if (found === undefined) throw new Error(`${filled.join(" ")} prints no ${name}: ${out}${err}`);
    kept.set(name, found);
  }
  if (call.onlyRun !== undefined) return { exitCode: null, out: [], err: [] };
  if (call.onlyExit !== undefined) return { exitCode, out: [], err: [] };
  return { exitCode, out: normalised(out, servers), err: normalised(err, servers) };
}
