import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Etcd3, Range } from "etcd3";
import { afterEach, expect, test } from "vitest";
import { open } from "../../packages/leasehold/src/index.js";
import { eventually } from "../support/built.js";
import { CoreCluster, type CoreProcess } from "./support/core-cluster.js";

/** Users of a core, with clients made for etcd and with our own client. */
let cluster: CoreCluster;
afterEach(() => cluster[Symbol.asyncDispose]());

function etcdctl(...words: string[]): string {
  const env = { ...process.env, ETCDCTL_API: "3" };
  return execFileSync("etcdctl", [`--endpoints=${cluster.endpoints}`, ...words], { encoding: "utf8", env });
}

/** ann may do everything below leasehold/ and a/. */
function setUp(): void {
  for (const line of [
    "user add root:rootpw",
    "user grant-role root root",
    "user add ann:annpw",
    "role add some",
    "role grant-permission some readwrite leasehold --prefix",
    "role grant-permission some readwrite a/ --prefix",
    "user grant-role ann some",
    "auth enable",
  ])
    etcdctl(...line.split(" "));
}

test("our client authenticates, and gets another token when the one it had is over", async () => {
  cluster = await CoreCluster.start(3, { flags: ["--auth-token-ttl", "1"] });
  setUp();
  const url = `core://${cluster.endpoints}`;
  await expect(open(url, { timeout: "3s" })).rejects.toThrow(/user name is empty/);
  await expect(open(url, { user: "ann", password: "wrong" })).rejects.toMatchObject({
    code: "UNAUTHENTICATED",
  });
  await using leases = await open(url, { user: "ann", password: "annpw" });
  await using lease = await leases.acquire("job", { ttl: "3s" });
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  // Renewed with other tokens than the first one.
  expect(lease.signal.aborted).toBe(false);
  await using second = await leases.acquire("other", { ttl: "3s" });
  expect(second.signal.aborted).toBe(false);
  // Its password has changed: the existing tokens end at once, and the old password is refused.
  execFileSync(
    "etcdctl",
    [
      `--endpoints=${cluster.endpoints}`,
      "--user=root:rootpw",
      "user",
      "passwd",
      "ann",
      "--interactive=false",
    ],
    { input: "newpw\n", env: { ...process.env, ETCDCTL_API: "3" } },
  );
  await expect(leases.acquire("third", { ttl: "3s" })).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
});

for (const program of ["etcd", "leasehold"] as const)
  test(`a watch hears on when its server, ${program}, was started anew and has forgotten all tokens`, async () => {
    cluster = await CoreCluster.start(1, { program });
    setUp();
    await using leases = await open(`core://${cluster.endpoints}`, { user: "ann", password: "annpw" });
    const heard: string[] = [];
    const listen = async () => {
      for await (const { resource } of leases.watch("")) heard.push(resource);
    };
    const listening = listen();
    const put = (name: string) => etcdctl("--user=ann:annpw", "put", `leasehold/leases/${name}`, "x");
    put("one");
    await eventually("the first", () => heard.includes("one"));
    const [server] = cluster.servers;
    await server!.kill("SIGTERM");
    server!.start();
    // Meanwhile our own client sends no request that would get it another token.
    await eventually("the server", () => isAnswering(put));
    await expect.poll(() => heard, { timeout: 10_000 }).toContain("two");
    await leases.close();
    await listening;
  });

function isAnswering(put: (name: string) => string): boolean {
  try {
    put("two");
    return true;
  } catch {
    return false;
  }
}

test("npm's etcd3 manages users and roles, and authenticates", async () => {
  cluster = await CoreCluster.start(3);
  const hosts = cluster.servers.map(({ endpoint }) => `http://${endpoint}`);
  const plain = new Etcd3({ hosts });
  const role = plain.role("some");
  await role.create();
  await role.grant({ permission: "Readwrite", range: Range.prefix("a/") });
  await plain.role("root").create();
  const [rootUser, ann] = [plain.user("root"), plain.user("ann")];
  await rootUser.create("rootpw");
  await rootUser.addRole("root");
  await ann.create("annpw");
  await ann.addRole(role);
  expect((await ann.roles()).map(({ name }) => name)).toEqual(["some"]);
  await plain.auth.authEnable();
  await expect(plain.put("a/1").value("x")).rejects.toThrow(/user name is empty/);
  const client = new Etcd3({ hosts, auth: { username: "ann", password: "annpw" } });
  await client.put("a/1").value("mine");
  expect(await client.get("a/1").string()).toBe("mine");
  await expect(client.put("b").value("x")).rejects.toThrow(/permission denied/);
  await expect(client.getAll().prefix("")).rejects.toThrow(/permission denied/);
  const admin = new Etcd3({ hosts, auth: { username: "root", password: "rootpw" } });
  await admin.auth.authDisable();
  await plain.put("b").value("x");
  for (const each of [plain, client, admin]) each.close();
});

test("signed tokens are taken by every server, and another one is had when rights have changed", async () => {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-jwt-"));
  try {
    const [key, pub] = ["key.pem", "pub.pem"].map((name) => join(folder, name)) as [string, string];
    execFileSync("openssl", ["genrsa", "-traditional", "-out", key, "2048"], { stdio: "ignore" });
    execFileSync("openssl", ["rsa", "-in", key, "-pubout", "-out", pub], { stdio: "ignore" });
    const token = `jwt,sign-method=RS256,priv-key=${key},pub-key=${pub},ttl=1m`;
    cluster = await CoreCluster.start(3, { flags: ["--auth-token", token] });
    setUp();
    expect(etcdctl("--user=ann:annpw", "put", "a/1", "x")).toBe("OK\n");
    await using leases = await open(`core://${cluster.endpoints}`, { user: "ann", password: "annpw" });
    await using lease = await leases.acquire("job");
    etcdctl("--user=root:rootpw", "role", "add", "more");
    await using other = await leases.acquire("other");
    expect([lease.signal.aborted, other.signal.aborted]).toEqual([false, false]);
    expect(() => etcdctl("--user=ann:annpw", "put", "b", "x")).toThrow(/permission denied/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

/** What a server answers by itself, asked by nobody in particular: all it says until it ends. */
async function shownBy({ endpoint }: CoreProcess): Promise<string> {
  const key = Buffer.from("a/1").toString("base64");
  const asked: [string, object][] = [
    ["kv/range", { key, serializable: true }],
    ["maintenance/snapshot", {}],
    ["maintenance/hash", {}],
    ["watch", { create_request: { key, start_revision: 1 } }],
  ];
  const said = asked.map(async ([path, body]) => {
    const signal = AbortSignal.timeout(15_000);
    const response = await fetch(`http://${endpoint}/v3/${path}`, {
      method: "POST",
      body: JSON.stringify(body),
      signal,
    });
    let text = "";
    const decoder = new TextDecoder();
    try {
      for await (const bytes of response.body!) {
        text += decoder.decode(bytes as Uint8Array, { stream: true });
        // A refused watch leaves its stream open for other watches.
        if (/"canceled":|"events":/.test(text)) break;
      }
    } catch {
      text += " without an end";
    }
    return `${path}: ${text.slice(0, 300).trim()}`;
  });
  return (await Promise.all(said)).join("\n");
}

/** Until the server listens. */
async function listening({ endpoint }: CoreProcess): Promise<void> {
  for (let tries = 0; tries < 3_000; tries += 1) {
    if (await fetch(`http://${endpoint}/version`).then(Boolean, () => false)) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`${endpoint} does not listen`);
}

test("a server that has just begun shows nothing by rights of the past, with a majority or without", async () => {
  cluster = await CoreCluster.start(3);
  const [first, ...others] = cluster.servers as [CoreProcess, ...CoreProcess[]];
  for (const line of ["put a/1 hidden", "user add root:rootpw", "user grant-role root root", "auth enable"])
    etcdctl(...line.split(" "));
  await Promise.all(cluster.servers.map((server) => server.kill()));
  first.start();
  await listening(first);
  const alone = await shownBy(first);
  expect(alone.split("\n").map((line) => /no leader/.test(line) || line)).toEqual([true, true, true, true]);
  expect(alone).not.toMatch(/kvs|events|blob|"hash"/);
  for (const server of others) server.start();
  await listening(others[0]!);
  // Now the servers learn of a leader, and refuse.
  const refused = /user name is empty|permission denied/;
  const together = await shownBy(first);
  expect(together.split("\n").map((line) => refused.test(line) || line)).toEqual([true, true, true, true]);
  // Changes made while a server is down apply to it from its first answer on.
  etcdctl("--user=root:rootpw", "auth", "disable");
  await first.kill("SIGTERM");
  etcdctl("auth", "enable");
  first.start();
  await listening(first);
  const back = await shownBy(first);
  expect(back.split("\n").map((line) => refused.test(line) || line)).toEqual([true, true, true, true]);
});
