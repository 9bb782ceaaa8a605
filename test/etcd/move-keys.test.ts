import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { CoreCluster, type Program } from "../core/support/core-cluster.js";
import { Authority } from "../support/pki.js";

/** examples/move-keys.mjs over TLS, with a user who has only the necessary rights. */

const run = promisify(execFile);
const script = fileURLToPath(new URL("../../examples/move-keys.mjs", import.meta.url));
const authority = new Authority();
afterAll(() => authority.remove());
const ours = authority.issue(["subjectAltName = IP:127.0.0.1", "extendedKeyUsage = serverAuth, clientAuth"]);
const mover = authority.issue(["extendedKeyUsage = clientAuth"]);
/** Without a token, the name in the certificate identifies the user. */
const name = basename(String(mover.cert), ".pem");
const password = "pw:with:colons";

interface Place {
  readonly endpoint: string;
  readonly ctl: (...words: string[]) => Promise<string>;
}

function placeOf({ servers }: CoreCluster): Place {
  const { endpoint } = servers[0]!;
  const tls = ["--cacert", authority.caFile, "--cert", String(ours.cert), "--key", String(ours.key)];
  const ctl = async (...words: string[]) => {
    const times = ["--dial-timeout=10s", "--command-timeout=30s"];
    const all = ["--endpoints", `https://${endpoint}`, ...times, ...tls, ...words];
    const { stdout } = await run("etcdctl", all, { env: { ...process.env, ETCDCTL_API: "3" } });
    return stdout;
  };
  return { endpoint, ctl };
}

async function begin(program: Program): Promise<CoreCluster> {
  const flags = ["--client-cert-auth", "--trusted-ca-file", authority.caFile];
  flags.push("--cert-file", String(ours.cert), "--key-file", String(ours.key));
  const cluster = await CoreCluster.create(1, { program, flags, clientScheme: "https" });
  for (const server of cluster.servers) server.start();
  const { ctl } = placeOf(cluster);
  await expect.poll(() => ctl("put", "outside", "1").catch(String), { timeout: 60_000 }).toBe("OK\n");
  return cluster;
}

/** Creates a user who can read one prefix only. */
async function protect({ ctl }: Place): Promise<void> {
  await ctl("user", "add", "root:rootpw");
  await ctl("user", "grant-role", "root", "root");
  await ctl("user", "add", `${name}:${password}`);
  await ctl("role", "add", "mover");
  await ctl("role", "grant-permission", "mover", "readwrite", "config/", "--prefix");
  // `make-mirror` of etcdctl 3.4 reads this key to learn the revision.
  await ctl("role", "grant-permission", "mover", "read", "foo");
  await ctl("user", "grant-role", name, "mover");
  await ctl("auth", "enable");
}

function variables(side: "FROM" | "TO", more: Record<string, string> = {}): Record<string, string> {
  const parts = { CACERT: authority.caFile, CERT: String(mover.cert), KEY: String(mover.key), ...more };
  return Object.fromEntries(Object.entries(parts).map(([part, value]) => [`${side}_${part}`, value]));
}

async function pairs({ ctl }: Place): Promise<string> {
  return ctl("--user", "root:rootpw", "get", "", "--prefix");
}

for (const [source, target] of [
  ["etcd", "leasehold"],
  ["leasehold", "etcd"],
] as const satisfies [Program, Program][])
  test(`move-keys from ${source} to ${target}, with certificates and rights on both sides`, async () => {
    await using old = await begin(source);
    await using next = await begin(target);
    const [from, to] = [placeOf(old), placeOf(next)];
    for (let index = 0; index < 20; index += 1) await from.ctl("put", `config/${index % 10}`, `of ${index}`);
    await from.ctl("put", "config/moved", "a name that the script would take");
    const lease = /lease ([0-9a-f]+) granted/.exec(await from.ctl("lease", "grant", "600"))![1]!;
    await from.ctl("put", "config/leased", "by a program", `--lease=${lease}`);
    await Promise.all([from, to].map(protect));
    const user = { USER: `${name}:${password}` };
    const env = { ...process.env, ...variables("FROM", user), ...variables("TO", user) };
    const moving = spawn(process.execPath, [script, from.endpoint, to.endpoint, "config/"], { env });
    let said = "";
    for (const stream of [moving.stdout, moving.stderr]) stream.on("data", (text) => (said += String(text)));
    await expect.poll(() => said, { timeout: 60_000 }).toMatch(/press Enter/);
    await from.ctl("--user", "root:rootpw", "put", "config/late", "while it copies");
    await from.ctl("--user", "root:rootpw", "del", "config/7");
    moving.stdin.end("\n");
    const [code] = (await once(moving, "close")) as [number];
    expect(`${code} ${said}`).toMatch(/^0 /);
    expect(said).toMatch(/1 keys that hang on leases were not moved/);
    expect(said).not.toContain(password);
    const expected = (await pairs(from)).replace("config/leased\nby a program\n", "");
    expect(await pairs(to)).toBe(expected);
    const revisionOf = async ({ ctl }: Place) =>
      Number(/"revision":(\d+)/.exec(await ctl("--user", "root:rootpw", "get", "none", "-w", "json"))![1]);
    expect(await revisionOf(to)).toBeGreaterThan(await revisionOf(from));
    // With a wrong password nothing is written.
    const wrong = { ...env, ...variables("TO", { USER: `${name}:wrong` }) };
    const refused = await run(process.execPath, [script, from.endpoint, to.endpoint, "config/x"], {
      env: wrong,
    }).catch((error: { stderr: string }) => error);
    expect(refused.stderr).toMatch(/authentication failed/);
  });
