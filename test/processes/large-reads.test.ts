import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import { connect as connectSocket, type Socket } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { RangeRequestSchema } from "../../packages/leasehold/src/etcd/gen/etcd/rpc_pb.js";
import { CoreCluster, type CoreProcess } from "../core/support/core-cluster.js";

const value = "v".repeat(1_000_000);
const keys = 50;
const clients = 60;
/** The size of two copies of one answer. The bug allocated that for each reader, and refused further ones. */
const moreMiBMax = 150;

function residentMiB({ pid }: CoreProcess): number {
  const [, kilobytes] = /^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))!;
  return Number(kilobytes) / 1024;
}

/** A call whose client reads as many bytes as it wants, and then stops. */
class Reading {
  readonly #session: ClientHttp2Session;
  readonly #stream: ClientHttp2Stream;
  bytes = 0;
  status: string | undefined;

  constructor(endpoint: string, untilBytes: number) {
    this.#session = connect(`http://${endpoint}`);
    this.#session.on("error", () => undefined);
    const path = "/etcdserverpb.KV/Range";
    this.#stream = this.#session.request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc",
      te: "trailers",
    });
    const asked = toBinary(
      RangeRequestSchema,
      create(RangeRequestSchema, { key: Buffer.from("k"), rangeEnd: Buffer.from("l") }),
    );
    const prefix = Buffer.alloc(5);
    prefix.writeUInt32BE(asked.length, 1);
    this.#stream.end(Buffer.concat([prefix, asked]));
    const status = (fields: Record<string, unknown>) => {
      const code = fields["grpc-status"];
      if (code !== undefined) this.status = String(code as string);
    };
    this.#stream.on("response", status).on("trailers", status);
    this.#stream.on("error", (error) => (this.status = error.message));
    this.#stream.on("data", (piece: Buffer) => {
      this.bytes += piece.length;
      if (this.bytes > untilBytes && !this.#isToEnd) this.#stream.pause();
    });
  }

  #isToEnd = false;

  async toEnd(): Promise<void> {
    this.#isToEnd = true;
    const closed = once(this.#stream, "close");
    this.#stream.resume();
    await closed;
  }

  leave(): void {
    this.#session.destroy();
  }
}

/** The same call as JSON. */
async function jsonReading(endpoint: string): Promise<Socket> {
  const [host, port] = endpoint.split(":");
  const socket = connectSocket(Number(port), host);
  const body = JSON.stringify({ key: "aw==", range_end: "bA==" });
  socket.write(`POST /v3/kv/range HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  await once(socket, "data");
  socket.pause();
  return socket;
}

test("sixty clients that stop in the middle of 50 MB cost little memory, block no other client, and can read on", async () => {
  await using cluster = await CoreCluster.start(1);
  const [server] = cluster.servers as [CoreProcess];
  for (let key = 0; key < keys; key += 1) await server.client.put(`k${key}`, value, 30_000);
  const before = residentMiB(server);
  const readings = Array.from({ length: clients }, () => new Reading(server.endpoint, 100_000));
  const sockets = await Promise.all(Array.from({ length: 10 }, () => jsonReading(server.endpoint)));
  try {
    await expect
      .poll(() => readings.filter(({ bytes }) => bytes > 100_000).length, { timeout: 60_000 })
      .toBe(clients);
    // All have begun. Others write and read meanwhile.
    await server.client.put("k0", "new", 30_000);
    expect(await server.client.get("k0", 30_000)).toBe("new");
    expect(residentMiB(server) - before).toBeLessThan(moreMiBMax);
    for (const reading of readings.slice(5)) reading.leave();
    await Promise.all(readings.slice(0, 5).map((reading) => reading.toEnd()));
    for (const { bytes, status } of readings.slice(0, 5)) {
      expect(status).toBe("0");
      // The answer is of the revision at which they asked.
      expect(bytes).toBeGreaterThan(keys * value.length);
    }
    expect(residentMiB(server) - before).toBeLessThan(moreMiBMax);
  } finally {
    for (const reading of readings) reading.leave();
    for (const socket of sockets) socket.destroy();
  }
});

test("a long range as JSON is complete, and has the content of the time when it was requested", async () => {
  await using cluster = await CoreCluster.start(1);
  const [server] = cluster.servers as [CoreProcess];
  for (let key = 0; key < 5; key += 1) await server.client.put(`k${key}`, value, 30_000);
  const body = JSON.stringify({ key: "aw==", range_end: "bA==" });
  const response = await fetch(`http://${server.endpoint}/v3/kv/range`, { method: "POST", body });
  await server.client.put("k4", "new", 30_000);
  const answer = (await response.json()) as { count: string; kvs: { key: string; value: string }[] };
  expect(answer.count).toBe("5");
  expect(answer.kvs.map((kv) => Buffer.from(kv.key, "base64").toString())).toEqual([
    "k0",
    "k1",
    "k2",
    "k3",
    "k4",
  ]);
  for (const kv of answer.kvs) expect(Buffer.from(kv.value, "base64").toString()).toBe(value);
});
