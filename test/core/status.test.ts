import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually, leasehold } from "../support/built.js";
import { CoreCluster, type Program } from "./support/core-cluster.js";

/** `leasehold status` and `leasehold doctor`, asked of our servers and of a real etcd. */

for (const program of ["etcd", "leasehold"] as const satisfies Program[]) {
  describe(`three servers of ${program}`, () => {
    let cluster: CoreCluster;
    beforeAll(async () => {
      cluster = await CoreCluster.start(3, { program });
    });
    afterAll(() => cluster[Symbol.asyncDispose]());
    const ask = (command: string, ...words: string[]) =>
      leasehold([command, "--endpoints", `core://${cluster.endpoints}`, "-o", "json", ...words]).finished;

    test("status shows one leader and two that follow it, also when one address alone is given", async () => {
      const [first = ""] = String(cluster.endpoints).split(",");
      const one = await leasehold(["status", "--endpoints", `core://${first}`, "-o", "json"]).finished;
      const all = await ask("status");
      for (const { code, stdout } of [one, all]) {
        const servers = JSON.parse(stdout) as { reachable: boolean; isLeader: boolean; leader: string }[];
        expect({ code, servers: servers.length }).toEqual({ code: 0, servers: 3 });
        expect(servers.filter(({ isLeader }) => isLeader)).toHaveLength(1);
        expect(new Set(servers.map(({ leader }) => leader)).size).toBe(1);
      }
    });

    test("doctor takes and renews leases, and is content", async () => {
      const { code, stdout } = await ask("doctor", "--duration", "500ms");
      expect(JSON.parse(stdout)).toMatchObject({ verdict: expect.stringMatching(/ok|unfit/) as string });
      expect(stdout).toMatch(/a lease is acquired in [\d.]+ m?s/);
      expect([0, 78]).toContain(code);
    });

    test("with one server gone doctor says which, and with two gone no lease can be had", async () => {
      const [one, two] = cluster.servers;
      await one!.kill();
      await eventually("the others have a leader", async () => (await ask("status")).code === 0, 20_000);
      expect((await ask("status")).stdout).toContain('"reachable": false');
      const doctor = await ask("doctor", "--duration", "200ms");
      expect(doctor).toMatchObject({
        code: 69,
        stdout: expect.stringContaining("does not answer: ") as string,
      });
      await two!.kill();
      await eventually("no leader", async () => (await ask("status")).code === 69, 20_000);
    }, 60_000);
  });
}
