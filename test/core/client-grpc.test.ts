import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { WatchListener } from "../../packages/leasehold/src/etcd/core-client.js";
import { grpcConnections } from "../../packages/leasehold/src/etcd/connection/grpc-connection.js";
import { GrpcCoreClient } from "../../packages/leasehold/src/etcd/grpc-core-client.js";
import { CompactionRequestSchema } from "../../packages/leasehold/src/etcd/gen/etcd/rpc_pb.js";
import { realWorld } from "../../packages/leasehold/src/runtime/world.js";
import { eventually } from "../support/built.js";
import { CoreCluster } from "./support/core-cluster.js";

const limits = { timeoutMs: 10_000 };

/** Records what a watch reports. */
class Ear implements WatchListener {
  readonly heard: string[] = [];
  missedCount = 0;
  written({ key, value }: { key: string; value: string }): void {
    this.heard.push(`${key}=${value}`);
  }
  deleted(key: string): void {
    this.heard.push(`${key} deleted`);
  }
  missed(): void {
    this.missedCount++;
  }
}

for (const program of ["etcd", "leasehold"] as const) {
  describe(`what leases need of a core, by ${program}`, () => {
    let cluster: CoreCluster;
    let core: GrpcCoreClient;
    beforeAll(async () => {
      cluster = await CoreCluster.start(1, { program });
      core = new GrpcCoreClient([cluster.endpoints], { connect: grpcConnections(undefined) }, realWorld());
    });
    afterAll(async () => {
      core.close();
      await cluster[Symbol.asyncDispose]();
    });

    test("a key is created once, and changed by comparison with its lease kept", async () => {
      expect((await core.grantLease(7n, 30, limits)).seconds).toBe(30);
      // Simulates a lost answer.
      expect((await core.grantLease(7n, 30, limits)).seconds).toBe(30);
      const first = await core.create("once", "a", 7n, limits);
      const second = await core.create("once", "b", 7n, limits);
      expect(second.entry).toEqual(first.entry);
      expect(first.entry).toMatchObject({ value: "a", leaseId: 7n, createRevision: first.revision });
      const { entry } = await core.replace(first.entry, "c", limits);
      expect(entry).toMatchObject({ value: "c", leaseId: 7n, createRevision: first.entry.createRevision });
      expect((await core.replace(first.entry, "d", limits)).entry).toEqual(entry);
      const { term } = await core.refreshLease(7n, limits);
      expect(term).toBe(second.term);
      await core.revokeLease(7n, limits);
      await core.revokeLease(7n, limits);
      expect((await core.read("once", limits)).entry).toBeUndefined();
      expect([
        (await core.refreshLease(7n, limits)).seconds,
        (await core.leaseLife(7n, limits)).seconds,
      ]).toEqual([0, -1]);
      await expect(core.create("late", "a", 7n, limits)).rejects.toThrow(/lease not found/);
    });

    test("thousands of refreshes, many at once, are all acknowledged", async () => {
      const ids = Array.from({ length: 100 }, (_, index) => 1_000n + BigInt(index));
      await Promise.all(ids.map((id) => core.grantLease(id, 30, limits)));
      for (let round = 0; round < 50; round++) {
        const answers = await Promise.all(ids.map((id) => core.refreshLease(id, { timeoutMs: 5_000 })));
        expect(answers.every(({ seconds }) => seconds === 30)).toBe(true);
      }
      await Promise.all(ids.map((id) => core.revokeLease(id, limits)));
    });

    test("a list of several pages is whole, and in order", async () => {
      const { client } = cluster.servers[0]!;
      const names = Array.from({ length: 2_100 }, (_, index) => `page/${String(index).padStart(5, "0")}`);
      for (let from = 0; from < names.length; from += 300)
        await Promise.all(names.slice(from, from + 300).map((name) => client.put(name, "")));
      const { entries } = await core.list("page/", limits);
      expect(entries.map(({ key }) => key)).toEqual(names);
    });

    test("a watch goes on where it was when its server was started anew", async () => {
      const server = cluster.servers[0]!;
      const { revision } = await core.read("none", limits);
      const [ear, other] = [new Ear(), new Ear()];
      core.watch({ key: "resume/", isPrefix: true }, revision + 1n, ear);
      const gone = core.watch({ key: "resume/1", isPrefix: false }, revision + 1n, other);
      await server.client.put("resume/1", "a");
      await eventually("the first", () => ear.heard.length === 1 && other.heard.length === 1);
      gone.stop();
      await server.kill();
      server.start();
      await cluster.ready();
      for (const value of ["b", "c"]) await server.client.put("resume/2", value);
      await eventually("the rest", () => ear.heard.length >= 3);
      expect(ear.heard).toEqual(["resume/1=a", "resume/2=b", "resume/2=c"]);
      expect([other.heard, ear.missedCount]).toEqual([["resume/1=a"], 0]);
    });

    test("a watch of what was compacted away says so, and goes on", async () => {
      const { client } = cluster.servers[0]!;
      for (const value of ["a", "b", "c"]) await client.put("compact", value);
      const { revision } = await core.read("compact", limits);
      await client.call("KV", "Compact", create(CompactionRequestSchema, { revision }));
      const ear = new Ear();
      core.watch({ key: "compact", isPrefix: false }, revision - 1n, ear);
      await eventually("that something was missed", () => ear.missedCount === 1);
      await client.put("compact", "d");
      // An etcd also reports the revision that was compacted last.
      await eventually("what follows", () => ear.heard.at(-1) === "compact=d");
      expect(ear.missedCount).toBe(1);
    });
  });
}
