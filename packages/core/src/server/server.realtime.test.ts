import { mkdtemp, open, rm } from "node:fs/promises";
import { once } from "node:events";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, toBinary } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Client, bytes } from "../../../../test/core/support/client.js";
import { freePorts } from "../../../../test/free-ports.js";
import { silent } from "leasehold/runtime";
import {
  LeaseGrantRequestSchema,
  LeaseKeepAliveRequestSchema,
  type LeaseKeepAliveResponse,
  type WatchRequest,
  WatchRequestSchema,
  type WatchResponse,
} from "leasehold/etcd/gen/etcd/rpc_pb.js";
import { CommandSchema } from "leasehold/etcd/gen/leasehold/command_pb.js";
import { type RunningCore, configOf, startCore } from "./index.js";
import { encodeMessage } from "./peers/codec.js";
import { Frames, frame } from "./peers/frames.js";
import { newestVersion } from "../state/members.js";
import { helloBytes, readWelcome } from "./peers/hello.js";
import type { PeerMessage } from "../replica/types.js";

/** One server in this process, and a client of its gRPC services. */
let folder: string;
let server: RunningCore;
let client: Client;
let start: () => Promise<void>;
let peerPort: number;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "lh-server-"));
  const [clientPort, ownPeerPort] = (await freePorts(2)) as [number, number];
  peerPort = ownPeerPort;
  const peer = `http://127.0.0.1:${peerPort}`;
  const config = configOf({
    dataDir: folder,
    listenClientUrls: `http://127.0.0.1:${clientPort}`,
    listenPeerUrls: peer,
    initialAdvertisePeerUrls: peer,
    electionTimeout: "100",
    heartbeatInterval: "10",
    snapshotCount: "50",
  });
  start = async () => {
    server = await startCore(config, silent);
    client = new Client(`127.0.0.1:${clientPort}`);
    await client.range("ready");
  };
  await start();
});
afterEach(async () => {
  vi.restoreAllMocks();
  client.close();
  await server.close();
  await rm(folder, { recursive: true });
});

describe("a server of the core", () => {
  test("acknowledged writes survive a restart, with snapshots and log", async () => {
    await Promise.all(Array.from({ length: 230 }, (_, number) => client.put(`k${number}`, `${number}`)));
    client.close();
    await server.close();
    await start();
    const { header } = await client.range("k0");
    expect(header).toMatchObject({ revision: 231n, clusterId: server.cluster, memberId: server.id });
    for (let number = 0; number < 230; number += 23) expect(await client.get(`k${number}`)).toBe(`${number}`);
  });

  test("concurrent requests share one write to the disk", async () => {
    const probe = await open(join(folder, "probe"), "w");
    const writes = vi.spyOn(Object.getPrototypeOf(probe) as typeof probe, "write");
    await probe.close();
    const worker = async (number: number) => {
      for (let round = 0; round < 5; round += 1) await client.put(`k${number}`, "x");
    };
    await Promise.all(Array.from({ length: 64 }, (_, number) => worker(number)));
    const together = 320 / writes.mock.calls.length;
    process.stdout.write(`64 in flight: ${together.toFixed(1)} puts a write\n`);
    expect(together).toBeGreaterThan(4);
  });

  test("a stream of refreshes stays open for a missing lease, and ends with its client's half-close", async () => {
    await client.call("Lease", "LeaseGrant", create(LeaseGrantRequestSchema, { ID: 5n, TTL: 60n }));
    const stream = client.stream<unknown, LeaseKeepAliveResponse>("Lease", "LeaseKeepAlive");
    const answers: string[] = [];
    stream.on("data", ({ ID, TTL }: LeaseKeepAliveResponse) => answers.push(`${ID}: ${TTL}`));
    for (const ID of [9n, 5n, 9n, 5n]) stream.write(create(LeaseKeepAliveRequestSchema, { ID }));
    stream.end();
    const code = await new Promise((resolve) => stream.on("status", (status) => resolve(status.code)));
    expect(answers).toEqual(["9: 0", "5: 60", "9: 0", "5: 60"]);
    expect(code).toBe(0);
  });

  test("a client that does not read for a while misses nothing, and gets it in order", async () => {
    const stream = client.stream<WatchRequest, WatchResponse>("Watch", "Watch");
    const createRequest = { key: bytes("w"), rangeEnd: bytes("x") };
    const revisions: number[] = [];
    const created = new Promise((resolve) => stream.once("data", resolve));
    stream.write(
      create(WatchRequestSchema, { requestUnion: { case: "createRequest", value: createRequest as never } }),
    );
    await created;
    stream.pause();
    const value = "x".repeat(20_000);
    // One at a time, so that each is a separate response; more than may wait for a client.
    for (let number = 0; number < 320; number += 1) await client.put(`w${number}`, value);
    stream.on("data", ({ events }: WatchResponse) => {
      for (const { kv } of events) revisions.push(Number(kv!.modRevision));
    });
    stream.on("error", () => undefined);
    stream.resume();
    await vi.waitFor(() => expect(revisions).toHaveLength(320), 10_000);
    expect(revisions).toEqual(revisions.toSorted((a, b) => a - b));
    stream.cancel();
  });

  test("a stop ends streams and calls with errors that clients know", async () => {
    const stream = client.stream<WatchRequest, WatchResponse>("Watch", "Watch");
    stream.write(
      create(WatchRequestSchema, {
        requestUnion: { case: "createRequest", value: { key: bytes("a") } as never },
      }),
    );
    await new Promise((resolve) => stream.once("data", resolve));
    const ended = new Promise((resolve) => stream.once("error", resolve));
    await server.close();
    expect(await ended).toMatchObject({ code: 14, details: "etcdserver: server stopped" });
  });
});

/**
 * Sends messages to the server as another server would. Returns the refusal; empty if it was accepted and has
 * sent the messages.
 */
async function callAs(from: bigint, messages: readonly PeerMessage[]): Promise<string> {
  const socket = connect(peerPort, "127.0.0.1").on("error", () => undefined);
  try {
    const refusals: string[] = [];
    const frames = new Frames((body) => void refusals.push(readWelcome(body).refusal));
    socket.on("data", (chunk) => frames.push(chunk));
    const self = { cluster: server.cluster, id: from, name: "x", disk: 1n, version: 7 };
    socket.write(Buffer.concat(frame([helloBytes(self, server.id, "messages")])));
    while (refusals.length === 0) await once(socket, "data");
    if (refusals[0] === "")
      socket.write(Buffer.concat(messages.flatMap((each) => frame(encodeMessage(each, newestVersion)))));
    return refusals[0]!;
  } finally {
    socket.end();
  }
}

test("a stranger at the peer port can propose nothing and stop nothing", async () => {
  let isEnded = false;
  server.failed.catch(() => (isEnded = true));
  const put = create(CommandSchema, {
    proposer: 99n,
    body: { case: "put", value: { key: bytes("stolen") } },
  });
  const { header } = await client.range("stolen");
  const term = Number(header!.raftTerm);
  const head = { from: 99n, to: server.id, term };
  const messages: PeerMessage[] = [
    {
      kind: "propose",
      ...head,
      number: 1,
      life: 1,
      settled: 1,
      again: false,
      command: toBinary(CommandSchema, put),
    },
    { kind: "heartbeat", ...head, term: term + 1, commit: 1_000_000, round: 1, transfersOver: 0 },
  ];
  const refusals = new Set<string>();
  for (let tries = 0; tries < 20; tries += 1) {
    refusals.add(await callAs(99n, messages));
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  expect([...refusals]).toEqual(["the server 63 is no member of this cluster"]);
  await client.put("after", "1");
  expect(await client.get("stolen")).toBeUndefined();
  expect(isEnded).toBe(false);
});
