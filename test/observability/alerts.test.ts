import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePorts } from "../free-ports.js";
import { isFaketimeInstalled } from "../e2e/fake-clock.js";
import { certificatePorts, certificateTargets, troubleCertificates } from "./alerts/certificates.js";
import { corePorts, coreTargets, troubleCore } from "./alerts/core.js";
import { filesPorts, filesTargets, troubleFiles } from "./alerts/files.js";
import { hastenedRules, hasteFactor } from "./alerts/hastened.js";
import { memberPorts, memberTargets, troubleMembers } from "./alerts/members.js";
import { storePorts, troubleStores } from "./alerts/stores.js";
import { Troubles } from "./alerts/troubles.js";
import { isPrometheusMissing, Scraped } from "./support.js";

/**
 * Each alert is caused in real clusters, observed by a real Prometheus, and resolved as docs/operations.md
 * describes. The clusters share one Prometheus and run concurrently; the troubles of one cluster are
 * sequential.
 *
 * It needs root, openssl, and of Debian prometheus, faketime, strace and redis-server.
 */

const isMissing =
  isPrometheusMissing ||
  !isFaketimeInstalled ||
  ["strace", "redis-server"].some((program) => spawnSync(program, ["--version"]).status !== 0);

const scraped = new Scraped();
const troubles = new Troubles(scraped);
const at = { members: [""], core: [""], stores: [""], files: [""], certificates: [""] };

beforeAll(async () => {
  if (isMissing) return;
  const count = 1 + memberPorts + corePorts + storePorts + filesPorts + certificatePorts;
  const addresses = (await freePorts(count)).map((port) => `127.0.0.1:${port}`);
  const [prometheus] = addresses.splice(0, 1);
  at.members = addresses.splice(0, memberPorts);
  at.core = addresses.splice(0, corePorts);
  at.stores = addresses.splice(0, storePorts);
  at.files = addresses.splice(0, filesPorts);
  at.certificates = addresses.splice(0, certificatePorts);
  writeFileSync(join(scraped.folder, "hastened.yml"), hastenedRules(hasteFactor));
  const jobs = {
    members: memberTargets(at.members),
    core: coreTargets(at.core),
    stores: at.stores,
    files: filesTargets(at.files),
    certificates: certificateTargets(at.certificates),
  };
  scraped.scrapeJobs(prometheus!, jobs, "hastened.yml");
});

afterAll(() => scraped[Symbol.asyncDispose]());

describe.skipIf(isMissing)("each alert fires in its trouble and ends with it:", () => {
  test.concurrent("members", async () => {
    await troubleMembers(troubles, at.members);
    expect(troubles.failures).toEqual([]);
  }, 1_800_000);
  test.concurrent("core", async () => {
    await troubleCore(troubles, at.core);
    expect(troubles.failures).toEqual([]);
  }, 1_800_000);
  test.concurrent("stores", async () => {
    await troubleStores(troubles, at.stores);
    expect(troubles.failures).toEqual([]);
  }, 1_800_000);
  test.concurrent("certificates", async () => {
    await troubleCertificates(troubles, at.certificates);
    expect(troubles.failures).toEqual([]);
  }, 1_800_000);
  test.concurrent("files", async () => {
    await troubleFiles(troubles, at.files);
    expect(troubles.failures).toEqual([]);
  }, 1_800_000);
});

test.skipIf(isMissing)("every alert is covered", () => {
  const alerts = [...hastenedRules(1).matchAll(/- alert: (\w+)/g)].map(([, name]) => name!);
  expect(alerts.filter((name) => !troubles.seen.has(name))).toEqual([]);
});

test("the tested rules differ from the shipped ones only in their durations", () => {
  const without = (text: string) => text.replaceAll(/(\bfor: |\[)[\d.]+[smh]/g, "$1");
  const hastened = hastenedRules(hasteFactor);
  expect(without(hastened)).toBe(without(hastenedRules(1)));
  expect(hastened).toContain("for: 10s");
  expect(hastened).toContain("[120s]");
  expect(hastened).not.toMatch(/(\bfor: |\[)\d+[mh]/);
});
