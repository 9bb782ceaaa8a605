import { create, toBinary } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { CommandSchema } from "leasehold/etcd/gen/leasehold/command_pb.js";
import { VirtualCluster } from "../../../../test/core/virtual-cluster.js";
import { withFaults } from "../../../../test/planted/switches.js";
import { joining } from "../raft/options.js";
import type { Entry } from "../raft/types.js";
import { CoreState } from "../state/state.js";
import { finish } from "../state/steps.js";
import type { CommandBody } from "../replica/context.js";
import { forced, restored } from "./new-core.js";
import { Replica } from "../replica/replica.js";

const member = (id: bigint) => ({
  id,
  name: `s${id}`,
  peerUrls: [`http://s${id}:1`],
  clientUrls: [],
  learner: false,
  disk: id,
  joining: false,
});

/** A state with a lease of 600 s of which less than a second was left at the last record. */
const bodies: CommandBody[] = [
  { case: "bootstrap", value: { cluster: 9n, members: [member(1n), member(2n)] } },
  { case: "leaseGrant", value: { ID: 5n, TTL: 600n } },
  { case: "put", value: { key: Buffer.from("k"), lease: 5n } },
  { case: "clusterTime", value: { milliseconds: 0n, left: [{ id: 5n, milliseconds: 800n }] } },
];
const commandOf = (body: CommandBody) => create(CommandSchema, { body });

function stateAfter(...commands: CommandBody[]): CoreState {
  const state = new CoreState();
  for (const body of commands) state.apply(commandOf(body), 1);
  return state;
}

test("a restored core restarts every lease with its full time, and keeps its keys", () => {
  const state = stateAfter(...bodies);
  const identify = (ids: readonly bigint[], name: string, token: string) => ({
    members: ids.map((id) => ({ id })),
    called: `${name} ${token}`,
  });
  const plan = { initialCluster: [11n, 12n], name: "a", token: "t" };
  const { identity, recovered } = restored({ state, hash: "h" }, plan, identify);
  expect(identity.called).toBe("a t h");
  expect(recovered.snapshot).toEqual({ index: 1, term: 1, membership: { voters: [11n, 12n], learners: [] } });
  expect(state.leases.get(5n)).toEqual({
    id: 5n,
    ttlSeconds: 600,
    name: undefined,
    keys: "k",
    leftMs: undefined,
    grantedIndex: 0,
  });
  expect([state.cluster, state.members.all]).toEqual([0n, []]);
});

test("the only server of a forced core has everything in its log, including remaining lease times", () => {
  const state = stateAfter(...bodies.slice(0, 2));
  const entries = bodies.slice(2).map((body, index): Entry => {
    const data = toBinary(CommandSchema, commandOf(body));
    return { kind: "normal", index: 3 + index, term: 2, data };
  });
  const membership = { voters: [1n, 2n], learners: [] };
  const snapshot = { index: 2, term: 1, membership };
  const hardState = { term: 3, votedFor: 2n, commit: 2 };
  const beginning = finish(forced({ entries, hardState, snapshot }, state, member(1n), 77n));
  expect(beginning).toEqual({
    hardState: { term: 4, votedFor: 0n, commit: 5 },
    snapshot: { index: 5, term: 4, membership: { voters: [1n], learners: [] } },
    entries: [],
  });
  expect(state.revisions.current).toBe(2);
  expect(state.leases.get(5n)?.leftMs).toBeUndefined();
  expect([state.cluster, state.members.all]).toEqual([77n, [member(1n)]]);
});

test("a server without content makes no backup: it would restore an empty core", () => {
  const random = { next: () => 0.5 };
  const state = new CoreState();
  const replica = new Replica({
    id: 3n,
    cluster: 9n,
    recovered: joining(),
    state,
    random,
    checksum: () => 0,
    tickMs: 100,
  });
  replica.step(
    { kind: "request", id: 1, client: "c", request: { kind: "freeze", request: {} }, deadlineMs: 99 },
    { monotonicMs: 0, wallMs: 0 },
  );
  expect(replica.take()?.answers).toEqual([]);
  replica.step({ kind: "tick" }, { monotonicMs: 100, wallMs: 100 });
  expect(replica.take()?.answers).toMatchObject([{ id: 1, result: { failure: "noLeader" } }]);
});

test("a server makes no backup before its core has an id: two equal backups would make cores with equal ids", () => {
  const sentAtEachMs = () => {
    const cluster = new VirtualCluster({ servers: 1 });
    const [server] = cluster.world.servers;
    const sent = Array.from({ length: 4_000 }, () => {
      cluster.run(1);
      return cluster.send(server!, { kind: "freeze", request: {} });
    });
    cluster.run(5_000);
    return sent.flatMap(({ outcome }) =>
      outcome !== undefined && outcome !== "lost" && "source" in outcome ? [outcome.source.cluster] : [],
    );
  };
  expect(new Set(sentAtEachMs())).toEqual(new Set([77n]));
  const planted = withFaults({ backupBeforeItsCore: true }, sentAtEachMs);
  expect(new Set(planted)).toEqual(new Set([0n, 77n]));
});
