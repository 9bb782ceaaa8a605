import { type ExecFileOptions, execFile, spawn } from "node:child_process";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CoreCluster } from "./support/core-cluster.js";

/** Debian's etcdctl, unmodified, against clusters of one, three and five of our servers. */
describe.each([1, 3, 5])("etcdctl and %i servers", (count) => {
  let cluster: CoreCluster;
  beforeAll(async () => {
    cluster = await CoreCluster.start(count);
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  const etcdctl = (...words: string[]) => run(cluster.endpoints, words);

  test("keys are put, found and deleted, by key, prefix and revision", async () => {
    expect(await etcdctl("put", "a/1", "one")).toBe("OK\n");
    expect(await etcdctl("put", "a/2", "two")).toBe("OK\n");
    expect(await etcdctl("put", "a/1", "eins", "--prev-kv")).toBe("OK\na/1\none\n");
    expect(await etcdctl("get", "a/", "--prefix")).toBe("a/1\neins\na/2\ntwo\n");
    expect(await etcdctl("get", "a/", "--prefix", "--order=DESCEND", "--limit=1")).toBe("a/2\ntwo\n");
    expect(await etcdctl("get", "a/1", "--rev=2", "--print-value-only")).toBe("one\n");
    expect(await etcdctl("del", "a/", "--prefix")).toBe("2\n");
    await expect(etcdctl("put", "", "x")).rejects.toThrow("etcdserver: key is not provided");
    await expect(etcdctl("get", "a", "--rev=999")).rejects.toThrow("required revision is a future revision");
  });

  test("a transaction does what its comparison decides, and a compacted revision is refused", async () => {
    await etcdctl("put", "t", "1");
    const transaction = 'value("t") = "1"\n\nput t 2\nget t\n\nput t 9\n\n';
    expect(await run(cluster.endpoints, ["txn"], transaction)).toBe("SUCCESS\n\nOK\n\nt\n2\n");
    expect(await run(cluster.endpoints, ["txn"], transaction)).toBe("FAILURE\n\nOK\n");
    const { header } = JSON.parse(await etcdctl("get", "t", "-w", "json")) as {
      header: { revision: number };
    };
    expect(await etcdctl("compact", String(header.revision))).toContain("compacted revision");
    await expect(etcdctl("get", "t", "--rev=2")).rejects.toThrow("required revision has been compacted");
  });

  test("a key goes with its lease, by revocation and by time", async () => {
    const grant = async (ttl: number) =>
      / ([0-9a-f]{8,16}) /.exec(await etcdctl("lease", "grant", String(ttl)))![1]!;
    const lease = await grant(60);
    await etcdctl("put", "leased", "x", `--lease=${lease}`);
    expect(await etcdctl("lease", "timetolive", lease, "--keys")).toMatch(
      /granted with TTL\(60s\).*\[leased\]/,
    );
    expect(await etcdctl("lease", "keep-alive", "--once", lease)).toContain("TTL(60)");
    expect(await etcdctl("lease", "list")).toContain(lease);
    await etcdctl("lease", "revoke", lease);
    expect(await etcdctl("get", "leased")).toBe("");
    await expect(etcdctl("put", "leased", "x", `--lease=${lease}`)).rejects.toThrow(
      "requested lease not found",
    );
    const short = await grant(1);
    await etcdctl("put", "leased", "x", `--lease=${short}`);
    await expect.poll(() => etcdctl("get", "leased"), { timeout: 15_000, interval: 200 }).toBe("");
    expect(await etcdctl("lease", "timetolive", short)).toContain("already expired");
  });

  test("a watch of a prefix tells the put and the deletion that follow", async () => {
    const { stdout } = await watching(cluster.endpoints, ["watch", "w/", "--prefix"], 2, async () => {
      await etcdctl("put", "w/1", "x");
      await etcdctl("del", "w/1");
    });
    expect(stdout).toBe("PUT\nw/1\nx\nDELETE\nw/1\n\n");
  });

  test("the lock of etcdctl runs a command", async () => {
    const held = await etcdctl("lock", "l", "echo", "held");
    expect(held).toBe("held\n");
  });

  test("status and members name every server and one leader, and every server is healthy", async () => {
    const rows = JSON.parse(await etcdctl("endpoint", "status", "-w", "json")) as {
      Status: { header: { member_id: number; revision: number }; leader: number };
    }[];
    expect(rows).toHaveLength(count);
    expect(new Set(rows.map(({ Status }) => Status.leader)).size).toBe(1);
    const { members } = JSON.parse(await etcdctl("member", "list", "-w", "json")) as {
      members: { name: string; clientURLs: string[] }[];
    };
    expect(members.map(({ name }) => name).sort()).toEqual(cluster.servers.map(({ name }) => name));
    expect(members.map(({ clientURLs }) => clientURLs[0]).sort()).toEqual(
      cluster.servers.map(({ endpoint }) => `http://${endpoint}`).sort(),
    );
    await etcdctl("endpoint", "health", "--cluster");
  });
});

function run(endpoints: string, words: readonly string[], input?: string): Promise<string> {
  const options: ExecFileOptions = { env: { ...process.env, ETCDCTL_API: "3" }, timeout: 30_000 };
  return new Promise((resolve, reject) => {
    const child = execFile(
      "etcdctl",
      ["--endpoints", endpoints, ...words],
      options,
      (error, stdout, stderr) =>
        error === null ? resolve(String(stdout)) : reject(new Error(`${error.message} ${String(stderr)}`)),
    );
    child.stdin?.end(input);
  });
}

/** Runs etcdctl until it has reported this many of the events that `cause` creates. */
async function watching(
  endpoints: string,
  words: readonly string[],
  events: number,
  cause: () => Promise<void>,
): Promise<{ stdout: string }> {
  const child = spawn("etcdctl", ["--endpoints", endpoints, ...words], {
    env: { ...process.env, ETCDCTL_API: "3" },
    stdio: ["pipe", "pipe", "inherit"],
  });
  let stdout = "";
  child.stdout.on("data", (chunk) => (stdout += String(chunk)));
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  await cause();
  const seen = () => [...stdout.matchAll(/^(PUT|DELETE)$/gm)].length;
  await expect.poll(seen, { timeout: 10_000 }).toBe(events);
  child.kill();
  return { stdout };
}
