// How to add a kind of storage that the package does not support: here a server that keeps cells in memory
// and speaks HTTP. The conformance suite tests that it does what leases need, and leases stay available while
// one of three such servers is down:
//
//   node --test own-store.test.mjs
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { describe, test } from "node:test";
import { LeaseholdError } from "leasehold";
import { openStoreLeases, runStoreConformance } from "leasehold/provider";

/**
 * A server of cells with compare and set. Each request runs in one step, so nothing comes between a read and
 * a write.
 */
async function startServer() {
  const cells = new Map();
  const server = { id: randomUUID(), forget };
  const answers = {
    read: ({ register }) => ({ kind: "cells", id: server.id, cells: contentOf(register) }),
    replace({ register, id, expected, next }) {
      if (id !== server.id || cells.get(register) !== expected)
        return { kind: "conflict", id: server.id, cells: contentOf(register) };
      cells.set(register, next);
      return { kind: "written", id: server.id };
    },
    list({ prefix, registersMax }) {
      const names = [...cells.keys()].filter((name) => name.startsWith(prefix)).slice(0, registersMax);
      return { kind: "registers", id: server.id, registers: names.map((name) => [name, contentOf(name)]) };
    },
  };
  const contentOf = (register) => (cells.has(register) ? [cells.get(register)] : []);
  /**
   * Acts like an empty disk in place of the old one: the marker by which users detect that is lost with the
   * cells.
   */
  function forget() {
    cells.clear();
    server.id = randomUUID();
  }
  const http = createServer(async (request, response) => {
    const question = JSON.parse(Buffer.concat(await request.toArray()).toString());
    response.end(JSON.stringify(answers[question.op](question)));
  });
  await new Promise((resolve) => http.listen(0, "127.0.0.1", resolve));
  server.url = `http://127.0.0.1:${http.address().port}`;
  server.close = () => new Promise((resolve) => (http.closeAllConnections(), http.close(resolve)));
  return server;
}

const bytesMax = 16_384;
const toText = (bytes) => (bytes === undefined ? undefined : Buffer.from(bytes).toString("base64"));
const toBytes = (text) => new Uint8Array(Buffer.from(text, "base64"));

/** The adapter: a store on such a server, with the interface of a store. */
class HttpStore {
  #closed = false;

  constructor(url) {
    this.url = url;
    this.traits = { name: url, kind: "atomic", durable: false, bytesMax, pollMs: 50, delayMs: 500 };
  }

  /** Never rejects: errors are results, too. */
  async perform(request, caller) {
    if (this.#closed) return failed("STORE_UNAVAILABLE", `${this.url} is closed`);
    if (request.op === "put") return failed("UNSUPPORTED", `${this.url} compares and sets`);
    if (request.next?.length > bytesMax) return failed("STORE_FULL", `more than ${bytesMax} bytes`);
    const { expected, next } = request;
    const body = JSON.stringify({ ...request, expected: toText(expected), next: toText(next) });
    try {
      const response = await fetch(this.url, { method: "POST", body, signal: caller?.signal });
      return answerOf(await response.json());
    } catch (cause) {
      return failed("STORE_UNAVAILABLE", `${this.url}: ${cause.message}`);
    }
  }

  async close() {
    this.#closed = true;
  }
}

function answerOf(answer) {
  if (answer.cells !== undefined) return { ...answer, cells: answer.cells.map(toBytes) };
  if (answer.registers === undefined) return answer;
  return {
    ...answer,
    registers: new Map(answer.registers.map(([name, cells]) => [name, cells.map(toBytes)])),
  };
}

const failed = (code, why) => ({ kind: "failed", error: new LeaseholdError(code, why) });

runStoreConformance({ describe, test }, "atomic", async () => {
  const server = await startServer();
  return {
    kind: "atomic",
    open: async () => new HttpStore(server.url),
    forget: async () => server.forget(),
    close: () => server.close(),
  };
});

// These servers lose everything with their process, and declare it (`durable: false`). A ground of such
// stores may have lost its leases, so it waits for the longest of them before it grants the first.
test("one of three servers may be gone: leases are taken, renewed and handed on", async (context) => {
  const servers = await Promise.all([startServer(), startServer(), startServer()]);
  context.after(() => Promise.all(servers.map((server) => server.close())));
  const participant = (name) =>
    openStoreLeases(async () => servers.map(({ url }) => new HttpStore(url)), { name, ttlMax: "2s" });
  const [one, two] = [await participant("one"), await participant("two")];
  await servers[0].close();

  const first = await one.acquire("reports/nightly");
  assert.equal(await two.tryAcquire("reports/nightly"), undefined);
  await first.renew();
  await first.release();
  const second = await two.acquire("reports/nightly");
  assert.ok(second.token > first.token);

  await Promise.all([one.close(), two.close()]);
});
