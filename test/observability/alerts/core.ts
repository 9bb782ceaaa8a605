import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { repeatedly, type Troubles } from "./troubles.js";
import { slowDisk } from "./slow-disk.js";

const ids = ["a", "b", "c"] as const;

export const corePorts = 6;

export const coreTargets = (at: readonly string[]): string[] => at.slice(0, 3);

const base64 = (text: string): string => Buffer.from(text).toString("base64");

/** Three servers with the smallest quota. */
export async function troubleCore(troubles: Troubles, at: readonly string[]): Promise<void> {
  const { scraped } = troubles;
  const cluster = ids.map((id, index) => `${id}=http://${at[3 + index]}`).join(",");
  const startServer = (id: string, index: number): ChildProcess => {
    const [client, peer] = [`http://${at[index]}`, `http://${at[3 + index]}`];
    return scraped.leasehold(
      ["core", "--name", id, "--data-dir", join(scraped.folder, `core-${id}`), "--initial-cluster", cluster],
      ["--listen-client-urls", client, "--advertise-client-urls", client],
      [
        "--listen-peer-urls",
        peer,
        "--initial-advertise-peer-urls",
        peer,
        "--quota-backend-bytes",
        "16777216",
      ],
    );
  };
  const servers = ids.map(startServer);
  const ask = async (what: string, body: object): Promise<{ status: number; said: string }> => {
    const answer = await fetch(`http://${at[0]}/v3/kv/${what}`, {
      method: "POST",
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(10_000),
    });
    return { status: answer.status, said: await answer.text() };
  };
  const put = (key: string, value: string) => ask("put", { key: base64(key), value: base64(value) });
  const haveLeader = async (): Promise<void> =>
    expect(await scraped.settled('sum(etcd_server_has_leader{job="core"})', 3)).toBe(3);
  await haveLeader();

  await troubles.happen({
    alerts: { CoreSpaceLow: "" },
    made: "keys are put until the quota refuses them",
    ended: "keys deleted and compacted",
    make: async () => {
      for (let at = 0; at < 400; at += 1)
        if ((await put(`big/${at}`, "x".repeat(64_000))).status !== 200) return;
      throw new Error("400 keys of 64 kB fit in 16 MiB");
    },
    mend: async () => {
      const range = { key: base64("big/"), range_end: base64("big0") };
      const { said } = await ask("deleterange", range);
      const { header } = JSON.parse(said) as { header: { revision: string } };
      // The leader may already have compacted this revision, since history takes more than three quarters of
      // the quota.
      const compaction = await ask("compaction", { revision: header.revision });
      expect(compaction.said).toMatch(/^\{"header":|has been compacted/);
      const alarm = (body: object) =>
        fetch(`http://${at[0]}/v3/maintenance/alarm`, { method: "POST", body: JSON.stringify(body) });
      const { alarms = [] } = (await (await alarm({ action: "GET" })).json()) as {
        alarms?: { memberID: string; alarm: string }[];
      };
      for (const each of alarms) await alarm({ action: "DEACTIVATE", ...each });
      // Writes are accepted again.
      await expect.poll(async () => (await put("small", "x")).status, { timeout: 20_000 }).toBe(200);
    },
  });

  const writing = repeatedly(async () => {
    await put("small", "x");
    await sleep(100);
  });
  try {
    let mend = (): Promise<void> => Promise.resolve();
    await troubles.happen({
      alerts: { CoreDiskSlow: `instance="${at[2]}"` },
      made: "each write and sync of a server takes 0.8 s longer (strace)",
      ended: "no longer",
      make: () => {
        mend = slowDisk(servers[2]!.pid!, 800);
      },
      mend: () => mend(),
    });
    await haveLeader();
    let end = (): Promise<void> => Promise.resolve();
    await troubles.happen({
      alerts: { CoreLeaderChangesOften: 'job="core"' },
      made: "each leader is stopped for 3 s (SIGSTOP)",
      ended: "leaders are left alone",
      make: () => {
        end = repeatedly(async () => {
          const found = await scraped.labels('etcd_server_is_leader{job="core"} == 1');
          const leader = servers[at.indexOf(found[0]?.["instance"] ?? "")];
          leader?.kill("SIGSTOP");
          await sleep(3_000);
          leader?.kill("SIGCONT");
          await sleep(1_500);
        });
      },
      mend: () => end(),
    });
    await haveLeader();
  } finally {
    await writing();
  }

  const kill = async (): Promise<void> => {
    for (const server of servers.slice(1)) {
      server.kill("SIGKILL");
      if (server.exitCode === null && server.signalCode === null) await once(server, "exit");
    }
  };
  const startAgain = (): void => {
    for (const index of [1, 2]) servers[index] = startServer(ids[index]!, index);
  };
  await troubles.happen({
    alerts: { CoreNoLeader: `instance="${at[0]}"`, CoreServersMissing: 'job="core"' },
    made: "two servers of three are killed",
    ended: "they are started",
    make: kill,
    mend: startAgain,
  });
}
