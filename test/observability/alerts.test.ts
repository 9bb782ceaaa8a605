import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { freePorts } from "../free-ports.js";
import { isFaketimeInstalled } from "../e2e/fake-clock.js";
import { hastenedRules, hasteFactor } from "./alerts/hastened.js";
import { memberPorts, memberTargets, troubleMembers } from "./alerts/members.js";
import { Troubles } from "./alerts/troubles.js";
import { isPrometheusMissing, Scraped } from "./support.js";

/**
 * Alerts of members are made to happen in a real cluster, seen by a real Prometheus, and ended as docs/operations.md
 * says. It needs Debian's packages prometheus and faketime.
 */

const isMissing = isPrometheusMissing || !isFaketimeInstalled;

const scraped = new Scraped();
const troubles = new Troubles(scraped);
let members: string[] = [];

beforeAll(async () => {
  if (isMissing) return;
  const [prometheus, ...rest] = (await freePorts(1 + memberPorts)).map((port) => `127.0.0.1:${port}`);
  members = rest;
  writeFileSync(join(scraped.folder, "hastened.yml"), hastenedRules(hasteFactor));
  scraped.scrapeJobs(prometheus!, { members: memberTargets(members) }, "hastened.yml");
});

afterAll(() => scraped[Symbol.asyncDispose]());

test.skipIf(isMissing)(
  "each alert of members fires in its trouble and ends with it",
  async () => {
    await troubleMembers(troubles, members);
    expect(troubles.failures).toEqual([]);
    expect([...troubles.seen].toSorted()).toEqual([
      "LeaseLost",
      "LeaseRenewalSlackLow",
      "MemberClockSkewHigh",
      "MemberNotReady",
      "MemberUnreachable",
    ]);
  },
  470_000,
);

test("the rules differ from those that are shipped in their durations alone", () => {
  const without = (text: string) => text.replaceAll(/(\bfor: |\[)[\d.]+[smh]/g, "$1");
  const hastened = hastenedRules(hasteFactor);
  expect(without(hastened)).toBe(without(hastenedRules(1)));
  expect(hastened).toContain("for: 10s");
  expect(hastened).toContain("[120s]");
  expect(hastened).not.toMatch(/(\bfor: |\[)\d+[mh]/);
});
