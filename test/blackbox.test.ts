import { type Socket, connect, createServer } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { ByteWriter } from "../packages/leasehold/src/flease/tcp/wire/bytes.js";
import {
  FRAME_HEADER_BYTES,
  FrameDecoder,
  FrameKind,
} from "../packages/leasehold/src/flease/tcp/wire/frame.js";
import {
  NONCE_BYTES,
  PUBLIC_KEY_BYTES,
  encodeHello,
} from "../packages/leasehold/src/flease/tcp/wire/hello.js";
import type { Judgement } from "./blackbox/judgement.js";
import { type FaultKind, type PlannedFault, faultKinds, planFaults } from "./blackbox/plan.js";
import type { RunResult } from "./blackbox/run.js";
import { summarize, summaryLines } from "./blackbox/summary.js";
import { Network, type Rule } from "./e2e/proxy.js";

/** The parts of the black box that need no processes. `npm run blackbox -- --self-test` tests the rest. */

function planned(seed: number, count: number): PlannedFault[] {
  const plan = planFaults(seed);
  return Array.from({ length: count }, () => plan.next().value);
}

const rounds = 5;
const round = faultKinds.length;

describe("a plan of faults", () => {
  test("is the same for the same seed, and different for another seed", () => {
    expect(planned(7, 100)).toEqual(planned(7, 100));
    expect(planned(7, 100)).not.toEqual(planned(8, 100));
  });

  test("has every kind once in each round", () => {
    const kinds = planned(3, rounds * round).map(({ kind }) => kind);
    for (let at = 0; at < kinds.length; at += round)
      expect(new Set(kinds.slice(at, at + round))).toEqual(new Set(faultKinds));
  });

  test("strikes one at a time in the first round, later sometimes two, but never with a wrong clock", () => {
    const faults = planned(5, 40 * round);
    expect(faults.slice(0, round).filter(({ meetsNext }) => meetsNext)).toEqual([]);
    const meetings = faults.flatMap(({ meetsNext, kind }, index) =>
      meetsNext ? [[kind, faults[index + 1]!.kind]] : [],
    );
    expect(meetings.length).toBeGreaterThan(20);
    expect(meetings.flat()).not.toContain("clock-step");
    expect(meetings.flat()).not.toContain("skew");
  });
});

/**
 * The numbers of the messages that arrive when one client sends `count` messages through the proxy in front
 * of member `a`.
 */
async function through(rule: Omit<Rule, "cut">, count: number): Promise<number[]> {
  const network = new Network();
  const arrived: number[] = [];
  const ends: Socket[] = [];
  const member = createServer((socket) => {
    ends.push(socket);
    const decoder = new FrameDecoder((kind, bytes, start) => {
      if (kind === FrameKind.batch) arrived.push(bytes.readUInt32BE(start));
    });
    socket.on("data", (chunk: Buffer) => decoder.push(chunk));
    socket.on("error", () => undefined);
  });
  await new Promise<void>((resolve) => member.listen(0, "127.0.0.1", resolve));
  onTestFinished(async () => {
    for (const socket of ends) socket.destroy();
    await network.close();
    await new Promise((resolve) => member.close(resolve));
  });
  const port = await network.openPort("a");
  port.connectTo((member.address() as { port: number }).port);
  network.treat("*", "a", rule);
  const client = connect(Number(port.address.split(":")[1]), "127.0.0.1");
  ends.push(client);
  const hello = new ByteWriter(256);
  const who = { role: "client", nodeId: "c", cluster: "x" } as const;
  encodeHello(hello, {
    claims: { ...who, configHash: "", view: 0, cellFunction: 1 },
    publicKey: Buffer.alloc(PUBLIC_KEY_BYTES),
    nonce: Buffer.alloc(NONCE_BYTES),
  });
  client.write(Buffer.from(hello.bytes.subarray(0, hello.length)));
  for (let number = 0; number < count; number++) {
    const frame = Buffer.alloc(FRAME_HEADER_BYTES + 4);
    frame.writeUInt32BE(1 + 4);
    frame.writeUInt8(FrameKind.batch, 4);
    frame.writeUInt32BE(number, FRAME_HEADER_BYTES);
    client.write(frame);
  }
  const expected = rule.duplicated === 1 ? 2 * count : count;
  await expect.poll(() => arrived.length).toBe(expected);
  return arrived;
}

const numbers = Array.from({ length: 50 }, (_, index) => index);

describe("the proxy", () => {
  test("delays messages and keeps their order", async () => {
    expect(await through({ delayMsMax: 20 }, 50)).toEqual(numbers);
  });

  test("duplicates messages", async () => {
    const arrived = await through({ duplicated: 1, delayMsMax: 20 }, 50);
    expect(arrived.toSorted((a, b) => a - b)).toEqual(numbers.flatMap((number) => [number, number]));
  });

  test("reorders messages, and loses none", async () => {
    const arrived = await through({ reordered: 0.5, delayMsMax: 20 }, 50);
    expect(arrived).not.toEqual(numbers);
    expect(arrived.toSorted((a, b) => a - b)).toEqual(numbers);
  });
});

const judgement: Judgement = {
  verdict: "clean",
  violations: [],
  voidBecause: [],
  journals: 3,
  tenures: 9,
  takeovers: 4,
  handovers: 4,
  renewals: 20,
  samples: 1_000,
  inconclusive: 0,
  lossesFoundAfterPause: 1,
  operations: { accepted: 100, refused: 1, unknown: 0 },
  decisions: { accepted: 100, refused: 1 },
  boots: 5,
  alarms: 1,
  troubles: 0,
  faults: faultKinds.map((kind) => ({ kind, count: 1, interrupted: 1, longestMs: 12.4 })),
};

function resultOf(
  changes: Partial<Judgement>,
  accidents: readonly string[] = [],
  touched: ReadonlyMap<FaultKind, number> = new Map(),
): RunResult {
  const rest = { seed: 1, seconds: 60, takeoverMsMax: 1_900, alarmed: [], accidents, touched };
  return { ...rest, judgement: { ...judgement, ...changes } };
}

describe("the summary", () => {
  test("is clean when everything happened and nothing was violated", () => {
    const summary = summarize(resultOf({}), 10);
    expect(summary.verdict).toBe("clean");
    expect(summaryLines(summary).join("\n")).toMatch(/holder-killed +1 +- +1 +0.01 s +1.90 s/);
  });

  test("is void when a fault never happened, no operation was done, or a process ended by itself", () => {
    const some = judgement.faults.slice(1);
    expect(summarize(resultOf({ faults: some }), 10)).toMatchObject({
      verdict: "void",
      why: ["never happened: holder-killed"],
    });
    expect(summarize(resultOf({ faults: some }), 1.5).verdict).toBe("clean");
    expect(summarize(resultOf({ voidBecause: ["no takeovers"] }), 1).why).toEqual(["no takeovers"]);
    const idle = { accepted: 0, refused: 0, unknown: 0 };
    expect(summarize(resultOf({ operations: idle }), 1).verdict).toBe("void");
    expect(summarize(resultOf({}, ["member-1: ended by itself"]), 1).verdict).toBe("void");
  });

  test("is void when a fault had no effect on the network or on clocks", () => {
    const touched = new Map([["full-cut", 0] as const, ["loss", 7] as const]);
    expect(summarize(resultOf({}, [], touched), 1)).toMatchObject({
      verdict: "void",
      why: ["touched nothing: full-cut"],
    });
    expect(summarize(resultOf({ alarms: 0 }), 1).why).toEqual(["clocks stepped, and nobody raised an alarm"]);
  });

  test("is violated rather than void", () => {
    const violations = [{ rule: "overlap", resource: "r", text: "two at once" }] as const;
    expect(summarize(resultOf({ violations, voidBecause: ["no takeovers"] }), 1)).toMatchObject({
      verdict: "violated",
      why: ["overlap: two at once", "no takeovers"],
    });
  });
});
