import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { mainPath } from "../support/built.js";
import { CoreCluster, type Program } from "./support/core-cluster.js";
import type { MemberChange } from "../../packages/leasehold/src/membership/types.js";

/** Members are processes of their own, which are killed. The watcher is this one, with the package as it was built. */

const dist = join(mainPath, "../..");
const { joinCoreGroup, joinGroup } = (await import(
  join(dist, "entry/membership.js")
)) as typeof import("../../packages/leasehold/src/entry/membership.js");
const { open } = (await import(
  join(dist, "index.js")
)) as typeof import("../../packages/leasehold/src/index.js");

const ttlMs = 2_000;
const memberPath = fileURLToPath(new URL("support/member.mjs", import.meta.url));

for (const program of ["etcd", "leasehold"] as const satisfies Program[]) {
  describe(`a group on ${program}`, () => {
    let cluster: CoreCluster;
    const started: ChildProcess[] = [];
    beforeAll(async () => {
      cluster = await CoreCluster.start(1, { program });
    });
    afterAll(async () => {
      for (const child of started) child.kill("SIGKILL");
      await cluster[Symbol.asyncDispose]();
    });

    async function start(kind: string, group: string): Promise<ChildProcess> {
      const words = [memberPath, kind, `core://${cluster.endpoints}?ttlMax=4s`, group, "a", `${ttlMs}ms`];
      const child = spawn(process.execPath, words, {
        env: { ...process.env, LEASEHOLD_DIST: dist },
        stdio: ["ignore", "pipe", "inherit"],
      });
      started.push(child);
      await once(child.stdout!, "data");
      return child;
    }

    async function watch(kind: string, group: string, grace = 0) {
      const address = `core://${cluster.endpoints}?ttlMax=4s`;
      return kind === "keys"
        ? joinCoreGroup(address, group, { grace })
        : joinGroup(await open(address), group, { grace });
    }

    /** A lease excludes, so the core is asked for more than its ttl; a plain key for no more. */
    const withinMs = { keys: ttlMs + 1_000, leases: ttlMs + 2_000 };

    test.concurrent.each(["keys", "leases"] as const)(
      "tells soon of a member that was killed, by %s",
      async (kind) => {
        const heardMs: number[] = [];
        await using watcher = await watch(kind, `killed-${kind}`);
        const changes = watcher.changes();
        for (let kills = 0; kills < 3; kills += 1) {
          const child = await start(kind, `killed-${kind}`);
          expect((await changes.next()).value).toMatchObject({ type: "joined", member: { name: "a" } });
          await sleep(Math.random() * 700);
          const killedMs = performance.now();
          child.kill("SIGKILL");
          expect((await changes.next()).value).toMatchObject({ type: "left", member: { name: "a" } });
          heardMs.push(performance.now() - killedMs);
        }
        expect(heardMs.filter((ms) => ms > withinMs[kind])).toEqual([]);
      },
    );

    test.concurrent.each(["keys", "leases"] as const)(
      "does not flap within the grace, by %s",
      async (kind) => {
        await using watcher = await watch(kind, `flaps-${kind}`, 8_000);
        const told: MemberChange["type"][] = [];
        void (async () => {
          for await (const { type } of watcher.changes()) told.push(type);
        })();
        for (let lives = 0; lives < 3; lives += 1) {
          const child = await start(kind, `flaps-${kind}`);
          await sleep(500);
          child.kill("SIGKILL");
          await sleep(2_500);
        }
        await start(kind, `flaps-${kind}`);
        await sleep(500);
        // Another life is another value.
        expect(told.filter((type) => type !== "changed")).toEqual(["joined"]);
        expect(watcher.members).toMatchObject([{ name: "a", isMissing: false }]);
      },
    );
  });
}
