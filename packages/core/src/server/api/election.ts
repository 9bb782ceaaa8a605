import { create } from "@bufbuild/protobuf";
import type { ResponseHeader } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import {
  type CampaignRequest,
  CampaignResponseSchema,
  type LeaderKey,
  type LeaderRequest,
  type LeaderResponse,
  LeaderResponseSchema,
  type ProclaimRequest,
  ProclaimResponseSchema,
  type ResignRequest,
  ResignResponseSchema,
} from "leasehold/etcd/gen/etcd/v3election_pb.js";
import type { Handlers } from "../wire/rpc/call.js";
import type { LocalClient } from "./calls/local.js";
import { type Place, type Queue, refusal } from "./recipes/queue.js";
import { recipe, type RecipeCall, streamRecipe } from "./recipes/recipes.js";

const notLeader = "election: not leader";
const noLeader = "election: no leader";
const leaderMissing = '"leader" field must be provided';

/** etcd's Election service. The first in the queue leads, and the value of its key is free-form. */
export function electionHandlers(client: LocalClient): Handlers {
  return {
    Campaign: recipe(client, async ({ lease, name, value }: CampaignRequest, { queue, signal }) => {
      const place = await elected(queue(name), lease, value, signal);
      const leader = { name, key: place.key, rev: place.created, lease: place.lease };
      return create(CampaignResponseSchema, { header: place.header, leader });
    }),
    Proclaim: recipe(client, async ({ leader, value }: ProclaimRequest, call) => {
      const { key, lease, queue, rev } = resumed(leader, call);
      const ofLease = lease === 0n ? await queue.lease() : lease;
      const header = await proclaim(queue, { key, created: rev, lease: ofLease }, value);
      return create(ProclaimResponseSchema, { header });
    }),
    Leader: recipe(client, async ({ name }: LeaderRequest, { queue, signal }) => {
      const { header, kvs } = await queue(name).first(signal);
      if (kvs[0] === undefined) throw refusal(noLeader);
      return create(LeaderResponseSchema, { header: header!, kv: kvs[0] });
    }),
    Observe: streamRecipe(client, (request: LeaderRequest, call) => observed(request, call)),
    Resign: recipe(client, async ({ leader }: ResignRequest, call) => {
      const { key, queue, rev } = resumed(leader, call);
      const { header } = await queue.removeCreated(key, rev);
      return create(ResignResponseSchema, { header: header! });
    }),
  };
}

async function elected(queue: Queue, lease: bigint, value: Uint8Array, signal: AbortSignal): Promise<Place> {
  const place = await queue.take(lease, value);
  try {
    const isSame = place.before === undefined || Buffer.from(value).equals(place.before);
    if (!isSame) await proclaim(queue, place, value);
    await queue.untilFirst(place, notLeader, signal);
    return place;
  } catch (error) {
    await queue.leave(place);
    throw error;
  }
}

async function proclaim(
  queue: Queue,
  { created, key, lease }: Pick<Place, "created" | "key" | "lease">,
  value: Uint8Array,
): Promise<ResponseHeader> {
  const put = { request: { case: "requestPut", value: { key, value, lease } } } as const;
  const { header, succeeded } = await queue.ifCreated(key, created, [put]);
  if (!succeeded) throw refusal(notLeader);
  return header!;
}

function resumed(
  leader: LeaderKey | undefined,
  { queue }: RecipeCall,
): { key: Uint8Array; lease: bigint; queue: Queue; rev: bigint } {
  if (leader === undefined) throw refusal(leaderMissing);
  const { key, lease, name, rev } = leader;
  return { key, lease, queue: queue(name), rev };
}

async function* observed(
  { name }: LeaderRequest,
  { queue, signal }: RecipeCall,
): AsyncGenerator<LeaderResponse, void> {
  for await (const { header, kv } of queue(name).observe(signal))
    yield create(LeaderResponseSchema, { header, kv });
}
