import { create } from "@bufbuild/protobuf";
import type { ServiceError } from "@grpc/grpc-js";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  LeaseGrantRequestSchema,
  LeaseKeepAliveRequestSchema,
  type LeaseKeepAliveResponse,
  PutRequestSchema,
} from "../../../packages/leasehold/src/etcd/gen/etcd/rpc_pb.js";
import { report } from "../../stores/support.js";
import { seedOf } from "../../support/seed.js";
import { bytes } from "../support/client.js";
import { CoreCluster } from "../support/core-cluster.js";
import { Counts } from "./counts.js";
import { knownDifference } from "./known-differences.js";
import { kindOf, Pair, shownDifference } from "./pair.js";
import { RandomSequences } from "./random-sequences.js";
import { shrunk } from "./shrink.js";
import type { Sequence } from "./action.js";

/**
 * Sends the same random requests to a real etcd and to our server, and compares the answers field by field.
 * Not compared: ids of cluster and member and the term (each cluster has its own), the remaining time of a
 * lease within a few seconds, the order of a list of leases or of a lease's keys (etcd's depends on expiry
 * and chance), and how events are grouped into messages. A difference is printed as the smallest sequence
 * that still shows it. `LEASEHOLD_SEEDS` is the number of sequences, `LEASEHOLD_SEED` the seed of the first.
 */
const seeds = Number(process.env["LEASEHOLD_SEEDS"] ?? 125);
const firstSeed = seedOf();

/** A difference caused by a busy machine does not recur with more time. */
const patienceMore = 4;

/** More retries would hide a server that is wrong now and then. */
const onceOnlyShareMax = 0.01;

/** Passwords make rights expensive: once enabled, rights stay enabled for this many sequences. */
const sequencesPerBlock = 25;
const blocksWithRightsEvery = 5;
const hasRights = (seed: number): boolean =>
  Math.floor(seed / sequencesPerBlock) % blocksWithRightsEvery === blocksWithRightsEvery - 1;

/** Servers that run concurrently. */
const pairs = 2;

/** Each belongs to one pair. */
function* blocksOf(first: number, count: number): Generator<number[]> {
  for (let from = first; from < first + count;) {
    const to = Math.min(first + count, (Math.floor(from / sequencesPerBlock) + 1) * sequencesPerBlock);
    yield Array.from({ length: to - from }, (_, at) => from + at);
    from = to;
  }
}

/** A mistake is planted in our server: the test only checks that it is found. */
const isPlanted = process.env["LEASEHOLD_PLANTED"] !== undefined;

/** By then it is clear that something is wrong. */
const differencesMost = isPlanted ? 1 : 10;

/** The difference, as text; undefined if it does not recur. */
async function smallestDifference(pair: Pair, sequence: Sequence): Promise<string | undefined> {
  const { difference: first } = await pair.compare(sequence, patienceMore);
  if (first === undefined) return undefined;
  const differs = async (smaller: Sequence): Promise<boolean> => {
    if (knownDifference(smaller.actions) !== undefined) return false;
    const { difference } = await pair.compare(smaller);
    return difference !== undefined && kindOf(difference) === kindOf(first);
  };
  if (isPlanted) return shownDifference(sequence, first);
  const smallest = await shrunk(sequence, differs);
  const { difference } = await pair.compare(smallest, patienceMore);
  return difference === undefined ? shownDifference(sequence, first) : shownDifference(smallest, difference);
}

async function differenceOf(pair: Pair, seed: number, counts: Counts): Promise<string | undefined> {
  const sequence = new RandomSequences(seed, counts.leftOut).next(hasRights(seed));
  const compared = await pair.compare(sequence);
  counts.took(sequence, compared);
  if (compared.difference === undefined) return undefined;
  const difference = await smallestDifference(pair, sequence);
  if (difference === undefined) {
    counts.onceOnly += 1;
    report(`seed ${seed} differed once:\n${shownDifference(sequence, compared.difference)}`);
  }
  return difference;
}

test(
  `${seeds} random sequences from seed ${firstSeed} on are answered as etcd answers them`,
  async () => {
    const counts = new Counts();
    const differences: string[] = [];
    const blocks = blocksOf(firstSeed, seeds);
    // One after another, because starting costs the most.
    let started: Promise<unknown> = Promise.resolve();
    const work = async () => {
      const starting = started.then(() => Pair.start());
      started = starting;
      await using pair = await starting;
      for (const block of blocks)
        for (const seed of block) {
          if (differences.length >= differencesMost) return;
          const difference = await differenceOf(pair, seed, counts);
          if (difference !== undefined) differences.push(`seed ${seed} differs:\n${difference}`);
        }
    };
    await Promise.all(Array.from({ length: pairs }, work));
    report(counts.text);
    expect(differences.join("\n")).toBe("");
    expect(counts.onceOnly).toBeLessThanOrEqual(2 + seeds * onceOnlyShareMax);
  },
  600_000 + seeds * 4_000,
);

let ours: CoreCluster;
let etcd: CoreCluster;
beforeAll(async () => {
  [ours, etcd] = await Promise.all([CoreCluster.start(1), CoreCluster.start(1, { program: "etcd" })]);
});
afterAll(() => Promise.all([ours, etcd].map((cluster) => cluster[Symbol.asyncDispose]())));

/** The refusal, or the answer without its header. */
async function told(asked: Promise<object>): Promise<unknown> {
  try {
    const { header: _header, ...answer } = (await asked) as { header?: unknown };
    return answer;
  } catch (error) {
    const { code, details } = error as ServiceError;
    return `${code} ${details}`;
  }
}

test("grants and keep-alives of leases are answered as etcd answers them", async () => {
  const [our, theirs] = await Promise.all(
    [ours, etcd].map(async ({ servers }) => {
      const { client } = servers[0]!;
      const said: unknown[] = [];
      for (const [ID, TTL] of [
        [77n, 1n],
        [78n, -1n],
        [79n, 0n],
        [-5n, 60n],
      ] as const) {
        const request = create(LeaseGrantRequestSchema, { ID, TTL });
        said.push(await told(client.call("Lease", "LeaseGrant", request)));
      }
      const stream = client.stream<unknown, LeaseKeepAliveResponse>("Lease", "LeaseKeepAlive");
      for (const ID of [77n, 999n, 77n]) {
        stream.write(create(LeaseKeepAliveRequestSchema, { ID }));
        const { ID: answered, TTL } = await new Promise<LeaseKeepAliveResponse>((resolve) =>
          stream.once("data", resolve),
        );
        said.push([String(answered), String(TTL)]);
      }
      stream.end();
      const code = await new Promise((resolve) =>
        stream.on("status", (status: { code: number }) => resolve(status.code)),
      );
      return [...said, code];
    }),
  );
  expect(our).toEqual(theirs);
});

const tooLarge = { key: bytes("big"), value: new Uint8Array(1.6 * 1024 * 1024) };

test("a request that is too large is refused in etcd's words", async () => {
  const answers = await Promise.all(
    [ours, etcd].map(({ servers }) =>
      told(servers[0]!.client.call("KV", "Put", create(PutRequestSchema, tooLarge))),
    ),
  );
  expect(answers[0]).toEqual(answers[1]);
  expect(answers[0]).toBe("3 etcdserver: request is too large");
});
