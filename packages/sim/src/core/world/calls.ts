import type { MemberId } from "@leasehold/core/inner/raft/types.js";
import { unwelcome } from "@leasehold/core/inner/replica/roll.js";
import { isMember } from "@leasehold/core/inner/raft/membership.js";
import type { CoreMember } from "@leasehold/core/inner/state/members.js";
import type { SimRandom } from "../../kit/random.js";
import type { SimServer } from "./server.js";
import type { CoreReport } from "./invariants.js";

/** The servers of a world, present and former. */
interface Servers {
  readonly servers: readonly SimServer[];
  readonly former: readonly SimServer[];
  readonly counters: { strangersRefused: number };
  readonly report: CoreReport;
  readonly random: SimRandom;
  readonly plan: { readonly lossRate: number };
  /** The side of each server in a partitioned network. */
  readonly side: ReadonlyMap<MemberId, number>;
}

/**
 * The server that answers when `sender` dials `to`: servers of a new core have the addresses of the former
 * ones.
 */
export function called({ former, servers }: Servers, sender: SimServer, to: MemberId): SimServer | undefined {
  if (!sender.reaches(to)) return undefined;
  const isOld = former.includes(sender);
  const meant = (isOld ? former : servers).find(
    ({ id, plan }) => id === to && plan.cluster === sender.plan.cluster,
  );
  if (!isOld || meant === undefined) return meant;
  return servers.find(({ plan }) => plan.address === meant.plan.address) ?? meant;
}

/** The members, as listed by the servers that answered. */
function answers({ plan, random, servers, side }: Servers, asker: SimServer): (readonly CoreMember[])[] {
  const answering = servers.filter(
    (other) =>
      other.isUp &&
      !other.isPaused &&
      other.plan.cluster === asker.plan.cluster &&
      asker.asks(other.id) &&
      (side.get(other.id) ?? 0) === (side.get(asker.id) ?? 0),
  );
  return answering.filter(() => !random.chance(plan.lossRate)).map(({ members }) => members);
}

/**
 * Whether the receiver accepts the sender's messages. In most runs calls within one core are accepted even
 * from removed servers: this makes the network worse than a real one.
 */
export function listens(world: Servers, receiver: SimServer, sender: SimServer, to: MemberId): boolean {
  const isStranger = world.former.includes(sender) && !world.former.includes(receiver);
  const call = { cluster: sender.plan.cluster, from: sender.id, to };
  if (!isStranger && sender.plan.cluster === receiver.plan.cluster) {
    if (receiver.reaches(sender.id)) {
      receiver.meet(sender);
      return true;
    }
    // As in `core/server/peers`: the receiver asks the servers that it knows, and then accepts the sender's
    // next message.
    receiver.take(answers(world, receiver));
    return false;
  }
  const { membership } = receiver.replica!.status();
  const self = { cluster: receiver.plan.cluster, id: receiver.id };
  const reason = unwelcome(call, self, (id) => isMember(membership, id));
  if (isStranger && reason !== "other-cluster")
    world.report(
      "restored",
      `${receiver.id} takes ${sender.id}, of a former core, for one of its own core's, and answers: ${reason ?? "welcome"}`,
    );
  if (reason !== undefined) world.counters.strangersRefused += 1;
  return reason === undefined;
}
