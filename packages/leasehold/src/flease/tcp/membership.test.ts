import { expect, test } from "vitest";
import { at } from "../../../../../test/support/flease-bench.js";
import { Membership } from "./membership.js";
import type { MembershipHost } from "./membership.js";
import type { Link } from "./transport/link.js";
import type { Echo } from "./wire/codec.js";

const heartbeatMs = 500;

/** A member of three. Its links confirm all announcements: at once, or when `answer` is called. */
function memberOfThree(isSlow = false) {
  let ms = 0;
  const calls: { to: string; told: string[]; heard: (value: null) => void }[] = [];
  const call: MembershipHost["transport"]["call"] = ({ peerId }, _method, params) => {
    const told = Object.keys((params as { connected: object }).connected);
    return new Promise((heard) => {
      calls.push({ to: peerId, told, heard });
      if (!isSlow) heard(null);
    });
  };
  /** Delivers everything in flight. */
  const answer = async () => {
    for (const { heard } of calls) heard(null);
    await new Promise(setImmediate);
  };
  const host: MembershipHost = {
    nodeId: "a",
    cluster: { settings: { members: ["a", "b", "c", "d", "e"] } } as unknown as MembershipHost["cluster"],
    transport: {
      identity: { incarnation: "1" } as MembershipHost["transport"]["identity"],
      call,
    },
    views: { isVoter: (id) => ["a", "b", "c"].includes(id) },
    now: () => at(ms),
  };
  const membership = new Membership(host, heartbeatMs, () => undefined);
  membership.duplicates.members = 3;
  const closed: string[] = [];
  const connect = (peerId: string) => {
    const link = { peerId, incarnation: `${peerId}1`, role: "member", close: () => closed.push(peerId) };
    membership.connected(link as unknown as Link);
    return link as unknown as Link;
  };
  /** Some heartbeats, each echoed by every link; returns whether the vote counts after them. */
  const beat = async (links: readonly Link[]) => {
    for (let beats = 0; beats < 4; beats += 1) {
      ms += heartbeatMs;
      const { mono, lo } = at(ms);
      for (const link of links) membership.echoed(link, { monoMs: mono, loMs: lo } as Echo, mono);
      await Promise.resolve();
      membership.maintain(at(ms), false);
      await Promise.resolve();
    }
    return membership.duplicates.votes(at(ms).mono);
  };
  return { connect, beat, membership, closed, calls, answer };
}

test("members without a vote in the present view confirm no member, neither by echoes nor by receiving announcements", async () => {
  const { connect, beat } = memberOfThree();
  const strangers = [connect("d"), connect("e")];
  expect(await beat(strangers)).toBe(false);
  expect(await beat([...strangers, connect("b")])).toBe(true);
});

test("a member that only receives an announcement confirms like one that echoes", async () => {
  const { connect, beat } = memberOfThree();
  connect("c");
  expect(await beat([])).toBe(true);
});

test("two processes of a member whose id is not known yet are detected as well", () => {
  const { connect, membership, closed } = memberOfThree();
  const b = connect("b");
  const stranger = connect("x");
  expect(membership.duplicates.connected["x"]).toBe("x1");
  membership.connectionsAnnounced(b, { connected: { x: stranger.incarnation }, before: "" });
  expect(closed).toEqual([]);
  membership.connectionsAnnounced(b, { connected: { x: "x2" }, before: "" });
  expect(closed).toEqual(["x"]);
});

test("each link has one announcement in flight; later changes follow once it is answered", async () => {
  const { connect, calls, answer } = memberOfThree(true);
  connect("b");
  for (const id of ["c", "d", "e"]) connect(id);
  const toldTo = (id: string) => calls.filter(({ to }) => to === id).map(({ told }) => told);
  expect(toldTo("b")).toEqual([["b"]]);
  await answer();
  expect(toldTo("b")).toEqual([["b"], ["b", "c", "d", "e"]]);
  await answer();
  expect(toldTo("b")).toHaveLength(2);
});
