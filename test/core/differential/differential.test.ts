import { create } from "@bufbuild/protobuf";
import type { ServiceError } from "@grpc/grpc-js";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  LeaseGrantRequestSchema,
  LeaseKeepAliveRequestSchema,
  type LeaseKeepAliveResponse,
  PutRequestSchema,
} from "../../../src/core/gen/etcd/rpc_pb.js";
import { report } from "../../stores/support.js";
import { seedOf } from "../../support/seed.js";
import { bytes } from "../support/client.js";
import { CoreCluster } from "../support/core-cluster.js";
import { Counts } from "./counts.js";
import { isKnownToDiffer } from "./known-differences.js";
import { kindOf, Pair, shownDifference } from "./pair.js";
import { RandomSequences } from "./random-sequences.js";
import { shrunk } from "./shrink.js";
import type { Sequence } from "./action.js";

/**
 * The same random requests to a real etcd and to ours: the answers are compared field by field. Not compared:
 * ids of cluster and member and the term (they are each cluster's own), what is left of a lease but by a few
 * seconds, the order of a list of leases or of a lease's keys (etcd's is by expiry, and by chance), and how
 * events are put together to messages. What differs is printed as the smallest sequence that still does.
 * `LEASEHOLD_SEEDS` is how many sequences, `LEASEHOLD_SEED` the first one's seed.
 */
const seeds = Number(process.env["LEASEHOLD_SEEDS"] ?? 125);
const firstSeed = seedOf();

/** A difference that a busy machine makes does not come again when there is more time. */
const patienceMore = 4;

/** Rights cost passwords: they stay on for so many sequences. */
const sequencesPerBlock = 25;
const blocksWithRightsEvery = 5;
const hasRights = (seed: number): boolean =>
  Math.floor(seed / sequencesPerBlock) % blocksWithRightsEvery === blocksWithRightsEvery - 1;

/** Then it is clear that something is wrong. */
const differencesMost = 5;

/** What differs, as text; nothing where it does not come again. */
async function smallestDifference(pair: Pair, sequence: Sequence): Promise<string | undefined> {
  const { difference: first } = await pair.compare(sequence, patienceMore);
  if (first === undefined) return undefined;
  const differs = async (smaller: Sequence): Promise<boolean> => {
    if (isKnownToDiffer(smaller.actions)) return false;
    const { difference } = await pair.compare(smaller);
    return difference !== undefined && kindOf(difference) === kindOf(first);
  };
  const smallest = await shrunk(sequence, differs);
  const { difference } = await pair.compare(smallest, patienceMore);
  return difference === undefined ? shownDifference(sequence, first) : shownDifference(smallest, difference);
}

test(
  `${seeds} random sequences from seed ${firstSeed} on are answered as etcd answers them`,
  async () => {
    await using pair = await Pair.start();
    const counts = new Counts();
    const differences: string[] = [];
    for (let seed = firstSeed; seed < firstSeed + seeds; seed += 1) {
      const sequence = new RandomSequences(seed).next(hasRights(seed));
      const compared = await pair.compare(sequence);
      counts.took(sequence, compared);
      if (compared.difference === undefined) continue;
      const difference = await smallestDifference(pair, sequence);
      if (difference === undefined) {
        counts.onceOnly += 1;
        continue;
      }
      differences.push(`seed ${seed} differs:\n${difference}`);
      if (differences.length === differencesMost) break;
    }
    report(counts.text);
    expect(differences.join("\n")).toBe("");
  },
  600_000 + seeds * 2_000,
);

let ours: CoreCluster;
let etcd: CoreCluster;
beforeAll(async () => {
  [ours, etcd] = await Promise.all([CoreCluster.start(1), CoreCluster.start(1, { program: "etcd" })]);
});
afterAll(() => Promise.all([ours, etcd].map((cluster) => cluster[Symbol.asyncDispose]())));

/** What is refused, or the answer without its header. */
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
