import { describe, expect, it } from "vitest";
import { type Faults, withFaults } from "../../../../test/planted/switches.js";
import { exploreViews } from "./views-world.js";
import type { ViewsWorld } from "./views-world.js";

/** One member takes another's place: quorums of abc and of abd, or of bcd, need not meet. */
const small: ViewsWorld = {
  before: [0, 1, 2],
  after: [0, 1, 3],
  timeMax: 2,
  leaseTicks: 1,
  waitTicks: 1,
  restarts: 0,
};

/** The only member before has lost its file, and is a majority of the list that the cluster began with. */
const lost: ViewsWorld = { ...small, before: [0], after: [1], restarts: 1, losses: true };

describe("one change of the members", () => {
  it.each([
    ["abc to abd", small],
    ["abc to bcd", { ...small, after: [1, 2, 3], timeMax: 1 }],
    ["abc to abcd", { ...small, after: [0, 1, 2, 3], timeMax: 1 }],
    ["abc to abd with a restart", { ...small, restarts: 1, timeMax: 1 }],
    ["a to b, and a file that is lost", lost],
  ])("explored to its end, lets no two hold: %s", (_name, world) => {
    const { states, finding } = exploreViews(world);
    expect(finding).toBeUndefined();
    expect(states).toBeGreaterThan(10_000);
  });

  it.each<[string, Partial<Faults>, Partial<ViewsWorld>]>([
    ["P37: no wait in the joint view", { noWaitInJointView: true }, {}],
    ["P37: the own wait is enough", { ownWaitIsEnough: true }, {}],
    ["P37: too many are left in the view before", { tooManyStragglers: true }, {}],
    ["P42: no joint view", { membersChangeAtOnce: true }, {}],
    ["P48: a restart ends the joint view", { restartEndsJointView: true }, { restarts: 1, timeMax: 1 }],
    ["P53: a lost file is the founding list", { foundingListAfterLostFile: true }, lost],
    ["P49: a joint quorum of the old cell", { jointQuorumOfOldCell: true }, {}],
    ["P49: a joint quorum of the new cell", { jointQuorumOfNewCell: true }, {}],
  ])("lets two hold with a mistake: %s", (_name, faults, more) => {
    const { finding } = withFaults(faults, () => exploreViews({ ...small, ...more }));
    expect(finding).toBeDefined();
  });
});
