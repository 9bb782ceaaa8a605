import { execFile, execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePorts } from "../free-ports.js";
import { CoreCluster, type Program } from "../core/support/core-cluster.js";
import { normalised } from "./normalised.js";

/**
 * Programs on etcd's clients in Go and Python, run against ours and a real etcd: the outputs are equal, line
 * by line.
 */

const programs = join(dirname(fileURLToPath(import.meta.url)), "programs");
const servers: readonly Program[] = ["leasehold", "etcd"];

/** From Debian's package; the path of the client itself shows whether it is installed. */
const gocode = "/usr/share/gocode";
const hasGo = existsSync(`${gocode}/src/go.etcd.io/etcd/clientv3`) && runs("go", "version");
/** Debian's own Python: no other finds Debian's packages. */
const python = "/usr/bin/python3";
const hasPython = runs(python, "-c", "import etcd3");

function runs(command: string, ...words: string[]): boolean {
  try {
    execFileSync(command, words, { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** The outputs on three servers of ours and three of etcd's, or on one of each. */
function saidOnBoth(count: number, words: (cluster: CoreCluster) => readonly string[]): Promise<string[][]> {
  return Promise.all(
    servers.map(async (program) => {
      await using cluster = await CoreCluster.start(count, { program });
      const [command, ...rest] = words(cluster);
      const out = await new Promise<string>((resolve, reject) => {
        execFile(command!, rest, { timeout: 90_000 }, (error, stdout, stderr) =>
          error === null ? resolve(stdout) : reject(new Error(stdout + stderr, { cause: error })),
        );
      });
      return normalised(out, cluster);
    }),
  );
}

describe.skipIf(!hasGo)("Go's clientv3 (without golang-go and golang-etcd-server-dev: skipped)", () => {
  const folder = mkdtempSync(join(tmpdir(), "lh-programs-"));
  const client = join(folder, "client");
  beforeAll(() => {
    const cache = join(tmpdir(), "leasehold-bench-go");
    const env = { ...process.env, GO111MODULE: "off", GOPATH: gocode, GOCACHE: cache };
    execFileSync("go", ["build", "-o", client, "client.go"], { cwd: programs, env, timeout: 300_000 });
  }, 300_000);
  afterAll(() => rmSync(folder, { recursive: true }));

  test("recipes, watches, members, maintenance and users", async () => {
    const newPeer = `http://127.0.0.1:${(await freePorts(1))[0]}`;
    const [ours, etcds] = await saidOnBoth(3, ({ endpoints }) => [client, endpoints, newPeer]);
    expect(ours).toEqual(etcds);
    expect(ours!.filter((line) => line.startsWith("failed"))).toEqual([]);
    expect(ours!.length).toBeGreaterThan(100);
  }, 180_000);
});

describe.skipIf(!hasPython)("Python's etcd3 (without python3-etcd3: skipped)", () => {
  test("keys, transactions, watches, leases, locks and alarms", async () => {
    const program = join(programs, "client.py");
    const [ours, etcds] = await saidOnBoth(1, ({ endpoints }) => [python, program, endpoints.split(":")[1]!]);
    expect(ours).toEqual(etcds);
    expect(ours!.filter((line) => line.startsWith("failed"))).toEqual([]);
    expect(ours!.length).toBeGreaterThan(40);
  }, 120_000);
});
