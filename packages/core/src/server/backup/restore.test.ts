import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { checksumOf } from "leasehold/journal";
import { CommandSchema } from "leasehold/etcd/gen/leasehold/command_pb.js";
import type { CommandBody } from "../../replica/context.js";
import { frozen } from "../../state/snapshot.js";
import { CoreState } from "../../state/state.js";
import { Replica } from "../../replica/replica.js";
import { configOf } from "../config/config.js";
import { foundingMember } from "../config/identity.js";
import { openContent } from "../disk/data-directory.js";
import { finish } from "../../state/steps.js";
import { backupBytes, planBackup } from "./backup-file.js";
import { restoreBackup } from "./restore.js";

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "lh-restore-"));
  file = join(folder, "backup");
  writeBackup("1");
});
afterEach(() => rmSync(folder, { recursive: true }));

const old = { id: 1n, name: "old", peerUrls: ["http://127.0.0.1:1"] };

function writeBackup(value: string): void {
  const state = new CoreState();
  const bodies: CommandBody[] = [
    { case: "bootstrap", value: { cluster: 9n, members: [old] } },
    { case: "put", value: { key: Buffer.from("k"), value: Buffer.from(value) } },
    { case: "spaceAlarm", value: { member: 1n, raised: true } },
  ];
  for (const body of bodies) state.apply(create(CommandSchema, { body }), 1);
  const meta = { index: 4, term: 2, membership: { voters: [1n], learners: [] } };
  const source = frozen(state);
  const plan = finish(planBackup({ $typeName: "leasehold.FrozenState", meta, source, bytes: 1 }));
  writeFileSync(file, Buffer.concat([...backupBytes(plan)]));
}

const configFor = (name: string, directory = name, more = {}) =>
  configOf({
    name,
    dataDir: join(folder, directory),
    initialCluster: "a=http://127.0.0.1:11,b=http://127.0.0.1:12",
    initialAdvertisePeerUrls: `http://127.0.0.1:${name === "a" ? 11 : 12}`,
    ...more,
  });

const urgeUntil = (replica: Replica, isDone: () => boolean): void => {
  for (let tick = 0; tick < 100 && !isDone(); tick += 1) {
    replica.step({ kind: "tick" }, { monotonicMs: tick * 100, wallMs: tick * 100 });
    for (let effects = replica.take(); effects !== undefined; effects = replica.take())
      if (effects.persist !== undefined)
        replica.step(
          { kind: "persisted", sequence: effects.persist.sequence },
          { monotonicMs: tick * 100, wallMs: tick * 100 },
        );
  }
  expect(isDone()).toBe(true);
};

async function opened(config: ReturnType<typeof configOf>) {
  const content = await openContent(config.dataDir, config);
  await content.journal.close();
  return content;
}

describe("a restored backup", () => {
  test("makes a core of new members only, with the keys of the backup", async () => {
    const config = configOf({
      name: "a",
      dataDir: join(folder, "alone"),
      initialCluster: "a=http://127.0.0.1:11",
      initialAdvertisePeerUrls: "http://127.0.0.1:11",
    });
    const { identity } = await restoreBackup(file, config);
    const { recovered, state, record } = await opened(config);
    expect(record.cluster).not.toBe(9n);
    expect(recovered.snapshot.membership).toEqual({ voters: [identity.id], learners: [] });
    const { id, cluster, members } = record;
    const random = { next: () => 0.5 };
    const founding = members.map(foundingMember);
    const replica = new Replica({
      id,
      cluster,
      recovered,
      state,
      random,
      checksum: checksumOf,
      tickMs: 100,
      founding,
    });
    urgeUntil(replica, () => replica.status().cluster !== 0n);
    expect(replica.status()).toMatchObject({
      role: "leader",
      revision: 2,
      keys: 1,
      cluster,
      spaceAlarms: [],
    });
    expect(state.members.all.map(({ name, peerUrls }) => [name, peerUrls])).toEqual([
      ["a", ["http://127.0.0.1:11"]],
    ]);
  });

  test("has the same ids on all servers, and other ids if one was restored from another file", async () => {
    const [one, two] = [await restoreBackup(file, configFor("a")), await restoreBackup(file, configFor("b"))];
    expect(one.identity.members).toEqual(two.identity.members);
    expect(one.identity.cluster).toBe(two.identity.cluster);
    writeBackup("2");
    const other = await restoreBackup(file, configFor("b", "other"));
    expect(other.identity.cluster).not.toBe(one.identity.cluster);
  });

  test("leaves a directory that is not empty unchanged", async () => {
    await restoreBackup(file, configFor("a"));
    await expect(restoreBackup(file, configFor("a"))).rejects.toMatchObject({ code: "INVALID_CONFIG" });
  });
});

describe("--force-new-cluster", () => {
  test("makes one server of two the only one of a new core; a second time it does nothing", async () => {
    await restoreBackup(file, configFor("a"));
    const before = await opened(configFor("a"));
    const forced = await opened(configFor("a", "a", { forceNewCluster: true }));
    expect(forced.recovered.snapshot.membership).toEqual({ voters: [before.record.id], learners: [] });
    expect(forced.record.cluster).not.toBe(before.record.cluster);
    expect(forced.state.members.all.map(({ name }) => name)).toEqual(["a"]);
    expect(forced.state.revisions.current).toBe(2);
    const again = await opened(configFor("a"));
    expect(again.record).toEqual(forced.record);
    expect(again.recovered.snapshot).toEqual(forced.recovered.snapshot);
    const twice = await opened(configFor("a", "a", { forceNewCluster: true }));
    expect(twice.record.cluster).toBe(forced.record.cluster);
  });
});
