import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { runStoreConformance } from "../../packages/leasehold/src/stores/conformance.js";
import type { OpenedStore } from "../../packages/leasehold/src/stores/common/contract.js";
import { openRedisStore } from "../../packages/leasehold/src/stores/redis/open.js";
import { freePorts } from "../free-ports.js";
import { RedisServer, type RedisServerOptions } from "./servers/redis.js";
import { failing, failureOf, measure, read, refusalOf, replace, report, write } from "./support.js";

async function start(options?: RedisServerOptions): Promise<RedisServer> {
  const server = await RedisServer.start(options);
  onTestFinished(() => server.close());
  return server;
}

async function open(url: URL, environment: Record<string, string> = {}): Promise<OpenedStore> {
  const store = await openRedisStore(url, { writer: "test", environment });
  onTestFinished(() => store.close());
  return store;
}

describe("three servers", () => {
  const servers: RedisServer[] = [];
  beforeAll(async () => {
    servers.push(await RedisServer.start(), await RedisServer.start({ durable: true }));
    servers.push(await RedisServer.start({ password: "servers-password" }));
  });
  afterAll(() => Promise.all(servers.map((server) => server.close())));

  let grounds = 0;
  const kinds = ["without persistence", "durable", "with a password"];
  describe.each(kinds.map((kind, index) => [kind, index] as const))("%s", (_, index) => {
    runStoreConformance({ describe, test }, "atomic", async () => {
      const server = servers[index]!;
      const key = `ground-${grounds++}`;
      const environment = { REDISCLI_AUTH: "servers-password" };
      return {
        kind: "atomic",
        open: (writer) =>
          openRedisStore(
            server.url(key),
            index === 2 ? { writer, environment } : { writer, environment: {} },
          ),
        forget: async () => void (await server.command(`DEL ${key}`)),
        close: async () => void (await server.command(`DEL ${key}`)),
      };
    });
  });

  test("the last of 500 writes is read, and the time of an operation is reported", async () => {
    for (const server of servers.slice(0, 2)) {
      const store = await open(server.url("latency"));
      const { id } = await write(store, "r", "0");
      const reads = await measure(500, () => read(store, "r"));
      const replaces = await measure(500, (n) => replace(store, "r", id, String(n), String(n + 1)));
      report(`redis, durable ${store.traits.durable}: read ${reads}; replace ${replaces}`);
      expect(await read(store, "r")).toEqual({ id, text: "500" });
    }
  });
});

describe("lost data", () => {
  test("a server without persistence is not durable, and its findings report that a restart loses data", async () => {
    const server = await start();
    const store = await open(server.url());
    expect(store.traits.durable).toBe(false);
    expect(store.findings.map(({ seen }) => seen).join("; ")).toMatch(
      /appendonly no.*a restart counts as forgetting/,
    );
  });

  test("a restart without persistence is noticed with the next operation", async () => {
    const server = await start();
    const store = await open(server.url());
    await write(store, "r", "before");
    const before = await read(store, "r");
    await server.restart();
    const [after] = await Promise.all([read(store, "r"), read(store, "other")]);
    expect(after.text).toBeUndefined();
    expect(after.id).not.toBe(before.id);
  });

  test("a restart that restores an old snapshot, with the old marker, is noticed", async () => {
    const server = await start();
    const store = await open(server.url());
    await write(store, "r", "before");
    await server.command("SAVE");
    const before = await read(store, "r");
    await write(store, "r", "after the snapshot");
    await server.restart();
    const after = await read(store, "r");
    expect(after.text).toBe("before");
    expect(after.id).not.toBe(before.id);
    expect(after.id.split("@")[0]).toBe(before.id.split("@")[0]);
    expect(await replace(store, "r", before.id, "before", "next")).toMatchObject({
      kind: "conflict",
      id: after.id,
    });
  });

  test("a durable server keeps everything, and stays the same", async () => {
    const server = await start({ durable: true });
    const store = await open(server.url());
    expect(store.traits.durable).toBe(true);
    await write(store, "r", "before");
    const before = await read(store, "r");
    await server.restart();
    expect(await read(store, "r")).toEqual(before);
  });

  test("a server that suspends its syncs during a rewrite of its file is not durable", async () => {
    const server = await start({ durable: true, settings: [["no-appendfsync-on-rewrite", "yes"]] });
    const store = await open(server.url());
    expect(store.traits.durable).toBe(false);
    expect(store.findings.map(({ seen }) => seen).join("; ")).toMatch(
      /no-appendfsync-on-rewrite yes.*a restart counts as forgetting/,
    );
  });

  test("a server that is no longer durable is a different store", async () => {
    const server = await start({ durable: true });
    const { id } = await read(await open(server.url()), "r");
    await server.command("CONFIG SET appendfsync everysec");
    const later = await open(server.url());
    expect(later.traits.durable).toBe(false);
    expect((await read(later, "r")).id).not.toBe(id);
    await server.command("CONFIG SET appendfsync always");
    expect((await open(server.url())).traits.durable).toBe(false);
  });
});

describe("failures", () => {
  test("a server that is stopped does not answer, and resumes where it was", async () => {
    const server = await start();
    const store = await open(server.url());
    await write(store, "r", "before");
    server.freeze();
    const given = { signal: AbortSignal.timeout(300) };
    expect(await failureOf(store.perform({ op: "read", register: "r" }, given))).toMatchObject(
      failing("STORE_UNAVAILABLE", /given up/),
    );
    server.thaw();
    expect((await read(store, "r")).text).toBe("before");
  });

  test("an operation whose answer never comes ends by itself, and the next one uses a new connection", async () => {
    const server = await start();
    const store = await open(server.url());
    server.freeze();
    expect(await failureOf(store.perform({ op: "read", register: "r" }))).toMatchObject(
      failing("STORE_UNAVAILABLE", /no answer within/),
    );
    server.thaw();
    expect((await read(store, "r")).text).toBeUndefined();
  });

  test("operations fail at once when the server is killed, and it is found again", async () => {
    const server = await start({ durable: true });
    const store = await open(server.url());
    await write(store, "r", "before");
    server.freeze();
    const underWay = store.perform({ op: "read", register: "r" });
    await server.kill();
    expect((await failureOf(underWay)).code).toBe("STORE_UNAVAILABLE");
    expect(await failureOf(store.perform({ op: "read", register: "r" }))).toMatchObject(
      failing("STORE_UNAVAILABLE", /ECONNREFUSED|closed/),
    );
    expect(await refusalOf(openRedisStore, server.url())).toMatchObject(
      failing("STORE_UNAVAILABLE", /ECONNREFUSED/),
    );
    await server.restart();
    await expect.poll(() => read(store, "r").then(({ text }) => text, String)).toBe("before");
  });

  test("opening a server that is stopped can be cancelled", async () => {
    const server = await start();
    server.freeze();
    const signal = AbortSignal.timeout(200);
    await expect(openRedisStore(server.url(), { writer: "test", signal })).rejects.toThrow(/timeout/);
  });

  test("a wrong or missing password is refused with STORE_PERMISSION, without a retry", async () => {
    const server = await start({ password: "the-right-one-4711" });
    const missing = await refusalOf(openRedisStore, server.url());
    expect(missing).toMatchObject(failing("STORE_PERMISSION", /NOAUTH/));
    const url = server.url();
    url.password = "a-wrong-one-4711";
    expect(await refusalOf(openRedisStore, url, {}, ["a-wrong-one-4711"])).toMatchObject(
      failing("STORE_PERMISSION", /WRONGPASS/),
    );
    const environment = { REDISCLI_AUTH: "wrong-too-4711" };
    expect(await refusalOf(openRedisStore, server.url(), environment, ["wrong-too-4711"])).toMatchObject(
      failing("STORE_PERMISSION", /WRONGPASS/),
    );
    const store = await open(server.url(), { REDISCLI_AUTH: "the-right-one-4711" });
    expect(JSON.stringify([store.traits, store.findings])).not.toContain("4711");
  });

  test("a user without access to the key is refused with STORE_PERMISSION, one without CONFIG is accepted", async () => {
    const server = await start();
    await server.command("ACL SETUSER narrow on >secret-4711 ~other:* +@all");
    const url = server.url();
    [url.username, url.password] = ["narrow", "secret-4711"];
    expect(await refusalOf(openRedisStore, url, {}, ["secret-4711"])).toMatchObject(
      failing("STORE_PERMISSION", /No permissions|NOPERM/i),
    );
    await server.command("ACL SETUSER narrow ~leasehold -config");
    const store = await open(url);
    expect(store.findings.map(({ seen }) => seen).join()).toContain("does not say how it persists");
  });

  test("a replica is refused with STORE_READ_ONLY", async () => {
    const primary = await start();
    const replica = await start({ settings: [["replicaof", "127.0.0.1", String(primary.port)]] });
    expect(await refusalOf(openRedisStore, replica.url())).toMatchObject(
      failing("STORE_READ_ONLY", /replica/),
    );
  });

  test("a primary that becomes a replica while it is used fails writes with STORE_READ_ONLY", async () => {
    const [primary, server] = [await start(), await start()];
    const store = await open(server.url());
    const { id } = await write(store, "r", "before");
    await server.command(`REPLICAOF 127.0.0.1 ${primary.port}`);
    expect(await failureOf(replace(store, "r", id, "before", "next"))).toMatchObject(
      failing("STORE_READ_ONLY", /READONLY/),
    );
  });

  test("a full server fails writes with STORE_FULL, and its content can still be read", async () => {
    const server = await start();
    const store = await open(server.url());
    const { id } = await write(store, "r", "before");
    await server.command("CONFIG SET maxmemory 1");
    expect(await failureOf(replace(store, "r", id, "before", "next"))).toMatchObject(
      failing("STORE_FULL", /OOM/),
    );
    expect((await read(store, "r")).text).toBe("before");
    expect(await refusalOf(openRedisStore, server.url())).toMatchObject(failing("STORE_FULL", /OOM/));
  });

  test("a key of another kind is refused with STORE_FOREIGN and left unchanged", async () => {
    const server = await start();
    await server.command("SET leasehold mine");
    expect(await refusalOf(openRedisStore, server.url())).toMatchObject(
      failing("STORE_FOREIGN", /WRONGTYPE/),
    );
    expect(await server.command("GET leasehold")).toContain("mine");
  });

  test("a node of a cluster is refused unless it owns the key", async () => {
    const node = async () =>
      start({
        settings: [
          ["cluster-enabled", "yes"],
          ["cluster-port", String((await freePorts(1))[0])],
        ],
      });
    const [one, two] = [await node(), await node()];
    expect(await refusalOf(openRedisStore, two.url())).toMatchObject(
      failing("STORE_UNAVAILABLE", /CLUSTERDOWN/),
    );
    await one.command("CLUSTER ADDSLOTSRANGE 0 16383");
    const busPort = /:\d+@(\d+)/.exec(await one.command("CLUSTER NODES"))![1]!;
    await two.command(`CLUSTER MEET 127.0.0.1 ${one.port} ${busPort}`);
    const open = () => refusalOf(openRedisStore, two.url());
    await expect.poll(open, { timeout: 20_000 }).toMatchObject(failing("STORE_UNFIT", /stand alone.*MOVED/));
    await expect(
      openRedisStore(one.url(), { writer: "test", environment: {} }).then((store) => store.close()),
    ).resolves.toBeUndefined();
  });
});
