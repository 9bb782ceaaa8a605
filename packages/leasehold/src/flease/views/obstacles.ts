import { majorityOf } from "../../common/majority.js";
import type { Membership, View } from "./view.js";

/** A participant's status, reported to the member that wants to begin a change. */
export interface Standing {
  /** Stamp of the view that it is in. */
  readonly stamp: number;
  /** Its acceptor answers. A new member's acceptor would, as soon as a view counts it. */
  readonly votes: boolean;
  /** The rest of its recovery wait, ms. */
  readonly waitMs: number;
  /** This member is connected to the new one, and counts its confirmations. */
  readonly knowsComing: boolean;
}

/** Why a change must not begin yet. */
export interface Obstacle {
  readonly code: "UNREACHABLE" | "TIMEOUT" | "NO_QUORUM";
  readonly text: string;
}

/**
 * Why a change of the members would lose leases, or could not complete, if it began now (3.14). From the
 * beginning of a change each quorum needs a majority of the members before and one of the members after. So
 * both must be able to vote: a new member learns the view and waits out its recovery before it counts.
 *
 * @param standings of the participants that answered, by id, including the member that begins
 */
export function obstacleTo(
  view: View,
  next: Membership,
  standings: ReadonlyMap<string, Standing>,
): Obstacle | undefined {
  const coming = next.members.find((id) => !view.members.includes(id));
  if (coming !== undefined) {
    const why = whyNotReady(view, coming, standings.get(coming));
    if (why !== undefined) return why;
  }
  const why = new Map(view.members.map((id) => [id, whyNoHelp(view, standings.get(id), coming)]));
  const helps = (id: string): boolean => id === coming || (why.has(id) && why.get(id) === undefined);
  for (const [members, which] of [
    [view.members, "present members"],
    [next.members, "members after the change"],
  ] as const) {
    const there = members.filter(helps).length;
    if (there >= majorityOf(members.length)) continue;
    const missing = members.filter((id) => !helps(id)).map((id) => `${id} ${why.get(id)}`);
    const text = `${there} of the ${members.length} ${which} can give their votes, which is no majority: ${missing.join(", ")}`;
    return { code: "NO_QUORUM", text };
  }
  return undefined;
}

function whyNotReady(view: View, id: string, standing: Standing | undefined): Obstacle | undefined {
  if (standing === undefined) return { code: "UNREACHABLE", text: `${id} is not connected: start it` };
  const { stamp, votes, waitMs } = standing;
  const late = (text: string): Obstacle => ({ code: "TIMEOUT", text: `${id} ${text}` });
  if (stamp !== view.stamp) return late("has not learnt the present view");
  if (waitMs > 0) return late(`waits out its recovery, ${secondsOf(waitMs)} s`);
  return votes ? undefined : late("is not connected with enough members");
}

/** Why a present member cannot support the change; `undefined` if it can. */
function whyNoHelp(
  view: View,
  standing: Standing | undefined,
  coming: string | undefined,
): string | undefined {
  if (standing === undefined) return "is not connected";
  if (standing.stamp !== view.stamp) return "is in another view";
  if (standing.waitMs > 0) return `waits out its recovery, ${secondsOf(standing.waitMs)} s`;
  if (!standing.votes) return "has no vote";
  return coming === undefined || standing.knowsComing ? undefined : `is not connected with ${coming}`;
}

const secondsOf = (ms: number): number => Math.ceil(ms / 1_000);

/** Decodes another participant's status. */
export function readStanding(answer: Readonly<Record<string, unknown>>): Standing {
  const { stamp, votes, waitMs, knowsComing } = answer;
  return {
    stamp: typeof stamp === "number" ? stamp : -1,
    votes: votes === true,
    waitMs: typeof waitMs === "number" ? waitMs : 0,
    knowsComing: knowsComing === true,
  };
}
