import { once } from "node:events";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { request as requestTls } from "node:https";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Validator } from "@seriousme/openapi-schema-validator";
import { type Leases, open } from "leasehold";
import { afterEach, expect, it } from "vitest";
import { Authority } from "../../../../test/support/pki.js";
import { type GatewayOptions, type RunningGateway, startGateway } from "../index.js";
import type { GrantAnswer, LeaseAnswer, SessionAnswer } from "../sessions/answers.js";
import { hashOf } from "./admission.js";
import { bodyBytesMax } from "./body.js";

const ends: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

let grounds = 0;
async function gatewayOf(more: Partial<GatewayOptions> = {}): Promise<{
  gateway: RunningGateway;
  leases: Leases;
  other: Leases;
}> {
  grounds += 1;
  const leases = await open(`memory:gateway-${grounds}`);
  const other = await open(`memory:gateway-${grounds}`);
  const gateway = await startGateway(leases, { address: "127.0.0.1:0", ...more });
  ends.push(
    () => other.close(),
    () => leases.close(),
    () => gateway.close(),
  );
  return { gateway, leases, other };
}

interface Reply<T> {
  readonly status: number;
  readonly body: T;
  readonly headers: Headers;
}

async function ask<T = Record<string, unknown>>(
  url: string,
  method: "GET" | "POST" | "DELETE",
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
  signal?: AbortSignal,
): Promise<Reply<T>> {
  const answer = await fetch(`${url}${path}`, {
    method,
    headers: { ...(body !== undefined && { "content-type": "application/json" }), ...headers },
    ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    ...(signal !== undefined && { signal }),
  });
  const text = await answer.text();
  return { status: answer.status, body: (text === "" ? {} : JSON.parse(text)) as T, headers: answer.headers };
}

const acquire = (
  url: string,
  body: object,
  headers = {},
  signal?: AbortSignal,
): Promise<Reply<GrantAnswer>> => ask<GrantAnswer>(url, "POST", "/v1/leases", body, headers, signal);

it("a lease is held until it is released, and no other client has it meanwhile", async () => {
  const { gateway, other } = await gatewayOf();
  const { status, body } = await acquire(gateway.url, {
    resource: "reports/nightly",
    ttl: "10s",
    data: { a: 1 },
  });
  expect([status, body.leases.length]).toEqual([200, 1]);
  const [lease] = body.leases as [LeaseAnswer];
  expect(lease).toMatchObject({
    resource: "reports/nightly",
    slot: 0,
    ttlMs: 10_000,
    releaseRequested: false,
  });
  expect(lease.validForMs).toBeGreaterThan(7_000);
  expect(lease.validForMs).toBeLessThan(10_000);
  expect(await other.tryAcquire("reports/nightly")).toBeUndefined();
  const held = await acquire(gateway.url, { resource: "reports/nightly", wait: 0 });
  expect([held.status, held.headers.get("content-type"), held.body]).toMatchObject([
    409,
    "application/problem+json",
    { code: "LEASE_HELD", status: 409, type: "urn:leasehold:error:LEASE_HELD" },
  ]);
  const renewed = await ask<LeaseAnswer>(gateway.url, "POST", `/v1/leases/${lease.lease}/renew`);
  expect([renewed.status, renewed.body.token]).toEqual([200, lease.token]);
  expect(await ask(gateway.url, "GET", "/v1/holder?resource=reports%2Fnightly")).toMatchObject({
    status: 200,
    body: { state: "held", token: lease.token, data: { a: 1 } },
  });
  expect((await ask(gateway.url, "DELETE", `/v1/leases/${lease.lease}`)).status).toBe(204);
  const next = await other.tryAcquire("reports/nightly");
  expect(next!.token > BigInt(lease.token)).toBe(true);
  // The session belonged to this lease alone.
  expect((await ask(gateway.url, "GET", `/v1/sessions/${body.session}`)).body).toMatchObject({
    code: "SESSION_GONE",
  });
  expect(gateway.status()).toEqual({ sessions: 0, watches: 0, leases: 0 });
});

it("a session whose client is silent ends and frees its leases; one that is renewed keeps them", async () => {
  const { gateway, other } = await gatewayOf();
  const opened = await ask<SessionAnswer>(gateway.url, "POST", "/v1/sessions", { ttl: "1s" });
  expect([opened.status, opened.headers.get("location")]).toEqual([
    201,
    `/v1/sessions/${opened.body.session}`,
  ]);
  const { session } = opened.body;
  await acquire(gateway.url, { resource: "kept", session });
  for (let turn = 0; turn < 4; turn += 1) {
    await sleep(400);
    const { body } = await ask<SessionAnswer>(gateway.url, "POST", `/v1/sessions/${session}/renew`);
    expect(body.leases.map(({ resource, validForMs }) => [resource, validForMs > 0])).toEqual([
      ["kept", true],
    ]);
  }
  const begunMs = performance.now();
  await (await other.acquire("kept", { wait: "20s" })).release();
  expect(performance.now() - begunMs).toBeGreaterThan(900);
  expect((await ask(gateway.url, "POST", `/v1/sessions/${session}/renew`)).body).toMatchObject({
    code: "SESSION_GONE",
  });
});

it("a client that disconnects while it waits gets nothing", async () => {
  const { gateway, other } = await gatewayOf();
  const held = await other.acquire("wanted");
  const gone = new AbortController();
  const waiting = acquire(gateway.url, { resource: "wanted", wait: "1m" }, {}, gone.signal);
  await expect.poll(() => gateway.status().leases).toBe(1);
  gone.abort();
  await expect(waiting).rejects.toThrow("aborted");
  await expect.poll(() => gateway.status()).toEqual({ sessions: 0, watches: 0, leases: 0 });
  await held.release();
  expect(await other.tryAcquire("wanted")).toBeDefined();
});

it("a request that is repeated with its key finds the first one's call", async () => {
  const { gateway, other } = await gatewayOf();
  const key = { "idempotency-key": "backup-7" };
  const first = await acquire(gateway.url, { resource: "keyed" }, key);
  const again = await acquire(gateway.url, { resource: "keyed" }, key);
  expect([again.status, again.body.leases[0]?.lease]).toEqual([200, first.body.leases[0]?.lease]);
  expect((await acquire(gateway.url, { resource: "other" }, key)).body).toMatchObject({
    code: "KEY_REUSED",
    status: 422,
  });
  const { body: opened } = await ask<SessionAnswer>(gateway.url, "POST", "/v1/sessions", { ttl: "30s" }, key);
  expect(opened).toMatchObject({ code: "KEY_REUSED" });

  const {
    body: { session },
  } = await ask<SessionAnswer>(gateway.url, "POST", "/v1/sessions", {});
  const held = await other.acquire("slow");
  const parts = { ...key, prefer: "wait=1" };
  expect(await acquire(gateway.url, { resource: "slow", session }, parts)).toMatchObject({
    status: 202,
    body: { waiting: true, session },
  });
  await held.release();
  // The call was granted meanwhile, although no request was open.
  await expect.poll(async () => (await other.holder("slow")).state).toBe("held");
  const { status, body } = await acquire(gateway.url, { resource: "slow", session }, parts);
  expect([status, body.leases[0]?.resource]).toEqual([200, "slow"]);
  expect(await acquire(gateway.url, { resource: "x" }, { prefer: "wait=1" })).toMatchObject({ status: 400 });

  // A client that cancels keeps neither its waiting calls nor its granted leases.
  const cancel = (of: string) => ask(gateway.url, "POST", `/v1/sessions/${session}/cancel`, { key: of });
  expect((await cancel("backup-7")).status).toBe(204);
  expect((await other.holder("slow")).state).toBe("free");
  const busy = await other.acquire("busy");
  const waits = { "idempotency-key": "busy-1", prefer: "wait=0" };
  expect((await acquire(gateway.url, { resource: "busy", session }, waits)).status).toBe(202);
  expect(gateway.status().leases).toBe(2);
  expect((await cancel("busy-1")).status).toBe(204);
  await busy.release();
  expect(await other.tryAcquire("busy")).toBeDefined();
  expect((await cancel("never")).status).toBe(204);
});

it("readers share, counted leases have slots, and several names are acquired together", async () => {
  const { gateway } = await gatewayOf();
  const readers = await Promise.all(
    [1, 2].map(() => acquire(gateway.url, { resource: "c/~rw", mode: "shared" })),
  );
  expect(readers.map(({ status }) => status)).toEqual([200, 200]);
  expect((await acquire(gateway.url, { resource: "c/~rw", wait: 0 })).status).toBe(409);
  const seats = await Promise.all([1, 2].map(() => acquire(gateway.url, { resource: "seats", limit: 2 })));
  expect(seats.map(({ body }) => body.leases[0]?.slot).sort()).toEqual([0, 1]);
  const { body } = await acquire(gateway.url, { resources: ["b", "a", "b"] });
  expect(body.leases.map(({ resource }) => resource)).toEqual(["a", "b"]);
  const { status } = await acquire(gateway.url, { resources: ["b", "z"], wait: 0 });
  expect(status).toBe(409);
  expect((await acquire(gateway.url, { resource: "z", wait: 0 })).status).toBe(200);
});

it("a gateway that stops leaves its leases to expire", async () => {
  const { gateway, other } = await gatewayOf();
  const sentMs = performance.now();
  const { body } = await acquire(gateway.url, { resource: "left", ttl: "1s" });
  await gateway.close();
  const taken = await other.acquire("left", { wait: "20s" });
  expect(performance.now() - sentMs).toBeGreaterThan(body.validForMs);
  expect(taken.token > BigInt(body.leases[0]!.token)).toBe(true);
});

it("changes are followed, and a client that reconnects receives what it missed", async () => {
  const { gateway, other } = await gatewayOf();
  await other.acquire("w/before");
  const first = await follow(`${gateway.url}/v1/watch?prefix=w/`);
  await expect.poll(() => first.events.map(({ name }) => name)).toEqual(["reset", "held"]);
  const lease = await other.acquire("w/now");
  await other.acquire("elsewhere");
  // The watch may skip a lease that is released at once.
  await expect.poll(() => first.events.length).toBe(3);
  await lease.release();
  await expect
    .poll(() => first.events.map(({ name, data }) => `${name} ${data["resource"] ?? ""}`))
    .toEqual(["reset ", "held w/before", "held w/now", "free w/now"]);
  const { id } = first.events[2]!;
  // Another client keeps the gateway's watch open, so it still records changes.
  const keeper = await follow(`${gateway.url}/v1/watch?prefix=none`);
  first.close();
  const back = await follow(`${gateway.url}/v1/watch?prefix=w/`, { "last-event-id": id! });
  await expect.poll(() => back.events.map(({ name }) => name)).toEqual(["free"]);
  const lost = await follow(`${gateway.url}/v1/watch?resource=w/before`, { "last-event-id": "another-7" });
  await expect.poll(() => lost.events.map(({ name }) => name)).toEqual(["reset", "held"]);
  for (const stream of [keeper, back, lost]) stream.close();
  await expect.poll(() => gateway.status().watches).toBe(0);
});

it("a request outside the API is refused, and harms nothing", async () => {
  const { gateway } = await gatewayOf();
  const { url } = gateway;
  const refused: readonly [string, Promise<Reply<Record<string, unknown>>>, number, string][] = [
    ["no JSON", ask(url, "POST", "/v1/leases", "{"), 400, "INVALID_CONFIG"],
    ["no object", ask(url, "POST", "/v1/leases", "[]"), 400, "INVALID_CONFIG"],
    ["unknown field", ask(url, "POST", "/v1/leases", { resource: "a", tll: 1 }), 400, "INVALID_CONFIG"],
    ["a prototype", ask(url, "POST", "/v1/leases", '{"__proto__":{"resource":"a"}}'), 400, "INVALID_CONFIG"],
    ["neither", ask(url, "POST", "/v1/leases", {}), 400, "INVALID_CONFIG"],
    ["both", ask(url, "POST", "/v1/leases", { resource: "a", resources: ["b"] }), 400, "INVALID_CONFIG"],
    ["none", ask(url, "POST", "/v1/leases", { resources: [] }), 400, "INVALID_NAME"],
    ["65 names", ask(url, "POST", "/v1/leases", { resources: names(65) }), 400, "INVALID_CONFIG"],
    ["NUL", ask(url, "POST", "/v1/leases", { resource: "a\0b" }), 400, "INVALID_NAME"],
    ["513 bytes", ask(url, "POST", "/v1/leases", { resource: "é".repeat(257) }), 400, "INVALID_NAME"],
    ["half a character", ask(url, "POST", "/v1/leases", '{"resource":"\\ud800"}'), 400, "INVALID_NAME"],
    ["a slot's name", ask(url, "POST", "/v1/leases", { resource: "a/~1" }), 400, "INVALID_NAME"],
    ["ttl", ask(url, "POST", "/v1/leases", { resource: "a", ttl: "999ms" }), 400, "TTL_OUT_OF_RANGE"],
    ["ttl", ask(url, "POST", "/v1/leases", { resource: "a", ttl: 3_600_001 }), 400, "TTL_OUT_OF_RANGE"],
    ["no duration", ask(url, "POST", "/v1/leases", { resource: "a", wait: "soon" }), 400, "INVALID_DURATION"],
    ["limit", ask(url, "POST", "/v1/leases", { resource: "a", limit: 65 }), 400, "INVALID_CONFIG"],
    ["a form", ask(url, "POST", "/v1/leases", "a=b", { "content-type": "text/plain" }), 415, "HTTP"],
    [
      "too large",
      ask(url, "POST", "/v1/leases", JSON.stringify({ data: "x".repeat(bodyBytesMax) })),
      413,
      "HTTP",
    ],
    ["a path", ask(url, "GET", "/v1/leases/..%2f..%2fetc"), 404, "HTTP"],
    ["a method", ask(url, "DELETE", "/v1/leases"), 405, "HTTP"],
    ["a session", ask(url, "GET", "/v1/sessions/abc"), 410, "SESSION_GONE"],
    ["a lease", ask(url, "DELETE", "/v1/leases/abc.1"), 410, "SESSION_GONE"],
    ["no name", ask(url, "GET", "/v1/holder"), 400, "HTTP"],
    ["two names", ask(url, "GET", "/v1/holder?resource=a&resource=b"), 400, "HTTP"],
    ["a query", ask(url, "GET", "/v1/holder?resource=a&x=1"), 400, "HTTP"],
    ["a key", ask(url, "POST", "/v1/leases", { resource: "a" }, { "idempotency-key": "a b" }), 400, "HTTP"],
    ["a site", ask(url, "GET", "/v1/holders", undefined, { origin: "http://evil.example" }), 403, "HTTP"],
  ];
  for (const [what, reply, status, code] of refused) {
    const { status: seen, body } = await reply;
    expect([what, seen, body["code"]]).toEqual([what, status, code]);
  }
  const deep = `{"resource":"deep","data":${"[".repeat(100_000)}${"]".repeat(100_000)}}`;
  expect((await ask(url, "POST", "/v1/leases", deep)).status).toBeGreaterThanOrEqual(400);
  expect(gateway.status()).toEqual({ sessions: 0, watches: 0, leases: 0 });
  // Each limit at its greatest value, and one above.
  const padded = (bytes: number): string => `{"resource":"padded"${" ".repeat(bytes - 21)}}`;
  expect((await ask(url, "POST", "/v1/leases", padded(bodyBytesMax))).status).toBe(200);
  expect((await ask(url, "POST", "/v1/leases", padded(bodyBytesMax + 1))).status).toBe(413);
  const keyed = (length: number) =>
    acquire(url, { resource: "k" }, { "idempotency-key": "k".repeat(length) });
  expect([(await keyed(255)).status, (await keyed(256)).status]).toEqual([200, 400]);
  const most = await acquire(url, { resources: names(64) });
  expect([most.status, most.body.leases.length]).toEqual([200, 64]);
  expect((await acquire(url, { resource: "é".repeat(256), ttl: 3_600_000 })).status).toBe(200);
  expect((await acquire(url, { resource: "seats", limit: 64, ttl: 1_000 })).status).toBe(200);
  // A name may look like a path.
  expect((await acquire(url, { resource: "../a" })).status).toBe(200);
  expect((await acquire(url, { resource: "a", wait: 0 })).status).toBe(200);
});

const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `name-${index}`);

it("a gateway without users refuses a host name that points to it from outside", async () => {
  const { gateway } = await gatewayOf();
  const { port } = new URL(gateway.url);
  const sent = request({
    port,
    host: "127.0.0.1",
    path: "/v1/holders",
    headers: { host: "evil.example" },
  }).end();
  const [answer] = (await once(sent, "response")) as [{ statusCode: number; resume(): void }];
  answer.resume();
  expect(answer.statusCode).toBe(421);
});

it("a connection that never ends its headers is closed", async () => {
  const { gateway } = await gatewayOf();
  const socket = connect(Number(new URL(gateway.url).port), "127.0.0.1");
  await once(socket, "connect");
  socket.on("error", () => undefined);
  socket.write("GET /livez HTTP/1.1\r\nhost: localhost\r\n");
  const drip = setInterval(() => socket.write("x: 1\r\n"), 200);
  await new Promise((resolve) => socket.once("close", resolve));
  clearInterval(drip);
  expect((await fetch(`${gateway.url}/livez`)).status).toBe(200);
});

it("users may do what their rights allow, and cannot use others' sessions", async () => {
  const file = join(tmpdir(), `gateway-users-${process.pid}`);
  ends.push(() => rmSync(file));
  const lines = [`ci sha256:${hashOf("ci-token")} hold:ci/`, `ops sha256:${hashOf("ops-token")} administer:`];
  writeFileSync(file, `${lines.join("\n")}\nreader sha256:${hashOf("reader-token")} read-lock:ci/\n`);
  const logged: Record<string, unknown>[] = [];
  const take = (message: string, event?: object): void => void logged.push({ message, ...event });
  const { gateway } = await gatewayOf({
    usersFile: file,
    logger: { debug: take, info: take, warn: take, error: take },
  });
  const as = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });
  const { url } = gateway;

  const nobody = await ask(url, "GET", "/v1/holders");
  expect([nobody.status, nobody.headers.get("www-authenticate")]).toEqual([401, 'Bearer realm="leasehold"']);
  expect((await ask(url, "GET", "/v1/holders", undefined, as("guessed"))).status).toBe(401);
  expect((await ask(url, "GET", "/v1/holders", undefined, { authorization: "Basic YTpi" })).status).toBe(401);

  expect((await acquire(url, { resource: "prod/x" }, as("ci-token"))).body).toMatchObject({
    code: "PERMISSION_DENIED",
  });
  expect((await acquire(url, { resources: ["ci/a", "prod/x"] }, as("ci-token"))).status).toBe(403);
  const { body } = await acquire(url, { resource: "ci/a" }, as("ci-token"));
  const lease = `/v1/leases/${body.leases[0]!.lease}`;
  for (const token of ["ops-token", "reader-token"]) {
    expect((await ask(url, "DELETE", lease, undefined, as(token))).status).toBe(410);
    expect(
      (await acquire(url, { resource: "ci/z", session: body.session, mode: "shared" }, as(token))).status,
    ).not.toBe(200);
  }
  expect((await acquire(url, { resource: "ci/a", wait: 0 }, as("reader-token"))).status).toBe(403);
  expect((await acquire(url, { resource: "ci/r/~rw", mode: "shared" }, as("reader-token"))).status).toBe(200);
  await acquire(url, { resource: "prod/x" }, as("ops-token"));
  const list = await ask<{ holders: { resource: string }[] }>(
    url,
    "GET",
    "/v1/holders",
    undefined,
    as("reader-token"),
  );
  expect(list.body.holders.every(({ resource }) => resource.startsWith("ci/"))).toBe(true);
  expect((await ask(url, "GET", "/v1/holder?resource=prod/x", undefined, as("reader-token"))).status).toBe(
    403,
  );
  const stream = await follow(`${url}/v1/watch`, as("reader-token"));
  await expect.poll(() => stream.events.length).toBeGreaterThan(1);
  expect(stream.events.every(({ data }) => !String(data["resource"] ?? "ci/").startsWith("prod"))).toBe(true);
  stream.close();

  expect((await ask(url, "POST", "/v1/breaks", { resource: "ci/a" }, as("ci-token"))).status).toBe(403);
  await ask(url, "POST", "/v1/release-requests", { resource: "ci/a" }, as("ops-token"));
  expect(logged.filter(({ event }) => event === "holder-action")).toMatchObject([
    { audit: true, user: "ops", action: "requestRelease", resource: "ci/a" },
  ]);
  expect(logged.filter(({ event }) => event === "permission-denied").length).toBeGreaterThan(1);
  expect(JSON.stringify(logged)).not.toContain('token"');
  expect((await ask<LeaseAnswer>(url, "GET", lease, undefined, as("ci-token"))).body.releaseRequested).toBe(
    true,
  );
});

it("a certificate proves its user, and one of another CA proves nothing", async () => {
  const [authority, stranger] = [new Authority(), new Authority()];
  ends.push(
    () => authority.remove(),
    () => stranger.remove(),
  );
  const server = authority.issue(["subjectAltName = IP:127.0.0.1"]);
  const [client, wrong] = [authority.issue([]), stranger.issue([])];
  const file = join(authority.folder, "users");
  // The CAs name their certificates `c1`, `c2` and so on.
  writeFileSync(file, "c2 certificate hold:ci/\n");
  const { gateway } = await gatewayOf({
    usersFile: file,
    tls: { cert: server.cert, key: server.key, clientCa: server.ca },
  });
  const status = async (files?: { cert: string; key: string }): Promise<number> => {
    const pems = files && { cert: readFileSync(files.cert), key: readFileSync(files.key) };
    const ca = readFileSync(server.ca);
    const sent = requestTls(`${gateway.url}/v1/holder?resource=ci/a`, { ca, ...pems, agent: false }).end();
    const [answer] = (await once(sent, "response")) as [{ statusCode: number; resume(): void }];
    answer.resume();
    return answer.statusCode;
  };
  expect([await status(client), await status(), await status(wrong)]).toEqual([200, 401, 401]);
  // The other CA's certificate has this name, too.
  expect(await status(stranger.issue([]))).toBe(401);
  await expect(fetch(gateway.url.replace("https", "http"))).rejects.toThrow("fetch failed");
});

it("a gateway that other machines can reach needs users and TLS, or `insecure`", async () => {
  const leases = await open("memory:gateway-open");
  ends.push(() => leases.close());
  const refused = startGateway(leases, { address: "0.0.0.0:0" });
  await expect(refused).rejects.toMatchObject({
    code: "INVALID_CONFIG",
    message: expect.stringContaining("--users"),
  });
  const open_ = await startGateway(leases, { address: "0.0.0.0:0", insecure: true });
  await open_.close();
});

it("the description lists each path, and all schemas that it refers to", async () => {
  const { gateway } = await gatewayOf();
  const { body } = await ask<{ paths: object; components: { schemas: object } }>(
    gateway.url,
    "GET",
    "/openapi.json",
  );
  expect(Object.keys(body.paths)).toEqual(
    expect.arrayContaining(["/v1/leases", "/v1/sessions/{id}/renew", "/v1/watch"]),
  );
  const refs = [...JSON.stringify(body).matchAll(/#\/components\/schemas\/(\w+)/g)].map(([, name]) => name);
  expect(refs.length).toBeGreaterThan(20);
  expect(Object.keys(body.components.schemas)).toEqual(expect.arrayContaining(refs));
  const validator = new Validator();
  expect(await validator.validate(body)).toEqual({ valid: true });
  expect(validator.version).toBe("3.1");
});

interface Event {
  readonly name: string;
  readonly id: string | undefined;
  readonly data: Record<string, unknown>;
}

async function follow(
  url: string,
  headers: Record<string, string> = {},
): Promise<{ events: Event[]; close(): void }> {
  const end = new AbortController();
  const answer = await fetch(url, { headers, signal: end.signal });
  expect(answer.status).toBe(200);
  const events: Event[] = [];
  void (async () => {
    let text = "";
    for await (const chunk of answer.body!.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      const frames = text.split("\n\n");
      text = frames.pop()!;
      for (const frame of frames) {
        const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(frame)?.[1];
        const name = field("event");
        if (name !== undefined)
          events.push({ name, id: field("id"), data: JSON.parse(field("data")!) as Event["data"] });
      }
    }
  })().catch(() => undefined);
  ends.push(() => end.abort());
  return { events, close: () => end.abort() };
}
