import { type ChildProcess, execFileSync } from "node:child_process";
import { once } from "node:events";
import {
  mkdirSync,
  openSync,
  closeSync,
  readdirSync,
  rmSync,
  statfsSync,
  statSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { dist } from "../../support/built.js";
import { slowDisk } from "./slow-disk.js";
import { repeatedly, type Troubles } from "./troubles.js";

const ids = ["a", "b", "c"] as const;

export const filesPorts = 12;

export const filesTargets = (at: readonly string[]): string[] => at.slice(9, 12);

/** Three nodes, each on a disk in memory with slightly more room than its alert requires. */
export async function troubleFiles(troubles: Troubles, at: readonly string[]): Promise<void> {
  const { scraped } = troubles;
  const disks = ids.map((id) => join(scraped.folder, `disk-${id}`));
  for (const disk of disks) {
    mkdirSync(disk);
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=1100m", "tmpfs", disk]);
  }
  const nodes: ChildProcess[] = [];
  try {
    const lists = ids.flatMap((id, index) => [
      "--node",
      `${id}=${at[index]}`,
      "--member",
      `${id}=${at[3 + index]}`,
    ]);
    const startNode = (id: string, index: number): void => {
      nodes[index] = scraped.leasehold(
        ["files", "serve", "--id", id, "--dir", join(disks[index]!, "node"), ...lists],
        ["--http", at[6 + index]!, "--metrics-address", at[9 + index]!],
        ["--ttl-max", "3s", "--max-clock-skew", "100ms"],
      );
    };
    ids.forEach(startNode);
    await troubleNodes(troubles, at, disks, nodes, (index) => startNode(ids[index]!, index));
  } finally {
    for (const node of nodes) {
      node.kill("SIGKILL");
      if (node.exitCode === null && node.signalCode === null) await once(node, "exit");
    }
    for (const disk of disks) execFileSync("umount", [disk]);
  }
}

async function troubleNodes(
  troubles: Troubles,
  at: readonly string[],
  disks: readonly string[],
  nodes: readonly ChildProcess[],
  startNode: (index: number) => void,
): Promise<void> {
  const { scraped } = troubles;
  const areServing = async (): Promise<void> =>
    expect(await scraped.settled('sum(leasehold_files_state{job="files",state="serving"})', 3)).toBe(3);
  const url = (index: number, path: string) => `http://${at[6 + index]}/${path}`;
  const put = async (index: number, path: string, body: string): Promise<number> => {
    const signal = AbortSignal.timeout(20_000);
    const answer = await fetch(url(index, path), { method: "PUT", body, signal });
    await answer.arrayBuffer();
    return answer.status;
  };
  const kill = async (index: number): Promise<void> => {
    nodes[index]!.kill("SIGKILL");
    await once(nodes[index]!, "exit");
  };
  const command = (...words: readonly string[]) =>
    execFileSync(process.execPath, [join(dist, "cli/main.js"), "files", ...words, "--nodes", url(0, "")]);

  await areServing();
  await expect.poll(() => put(0, "data", "x".repeat(600_000)), { timeout: 60_000 }).toBe(201);
  // The victim is neither the node that gets the requests nor the primary of names.
  const primaries = await Promise.all(
    ids.map(
      async (_, index) => (await scraped.values(`leasehold_files_primaries{instance="${at[9 + index]}"}`))[0],
    ),
  );
  const victim = primaries[2] === 0 ? 2 : 1;
  const other = victim === 2 ? 1 : 2;
  const instance = `instance="${at[9 + victim]}"`;
  const peer = `peer="${ids[victim]}"`;
  const working = repeatedly(async () => {
    await put(0, "small", "x");
    await sleep(200);
  });
  const ballast = join(disks[victim]!, "ballast");
  const fill = (bytes: number): void => {
    execFileSync("fallocate", ["-l", String(bytes), ballast]);
  };

  await troubles.happen({
    alerts: { FilesDiskFull: instance },
    made: "a file of others fills a node's disk (tmpfs) to 0.95 GB free",
    ended: "it is deleted",
    make: () => fill(200 * 1_048_576),
    mend: () => rmSync(ballast),
  });
  await troubles.happen({
    alerts: { FilesCopiesBehind: peer },
    made: "nothing is free on a node's disk",
    ended: "space is made",
    make: () => {
      const { bavail, bsize } = statfsSync(disks[victim]!);
      // Fill the disk completely: with a megabyte free, small changes would continue for minutes.
      fill(bavail * bsize);
    },
    mend: () => rmSync(ballast),
  });
  await troubles.happen({
    alerts: { FilesBlocksDamaged: instance },
    made: "bytes on a node's disk are overwritten",
    ended: "the scrub has repaired them, and an hour is over",
    make: () => damage(join(disks[victim]!, "node")),
    look: async () => {
      const repaired = `leasehold_files_events_total{event="repaired",${instance}} > bool 0`;
      expect(await scraped.settled(repaired, 1)).toBe(1);
    },
    mend: () => undefined,
  });
  let mendDisk = (): Promise<void> => Promise.resolve();
  await troubles.happen({
    alerts: { FilesDiskSlow: instance },
    made: "each write and sync of a node takes 0.8 s longer (strace)",
    ended: "no longer",
    make: () => {
      mendDisk = slowDisk(nodes[victim]!.pid!, 800);
    },
    mend: () => mendDisk(),
  });
  let end = (): Promise<void> => Promise.resolve();
  await troubles.happen({
    alerts: { FilesRequestsFail: 'outcome="507"' },
    made: "a program puts more than its folder's quota",
    ended: "the quota is raised",
    make: async () => {
      expect((await fetch(url(0, "full"), { method: "MKCOL" })).status).toBe(201);
      expect(await put(0, "full/a", "12345")).toBe(201);
      command("quota", "full", "--bytes", "10B");
      end = repeatedly(async () => {
        await put(0, "full/b", "1234567890");
        await sleep(200);
      });
    },
    mend: () => command("quota", "full", "--bytes", "1MB"),
  });
  await end();
  await troubles.happen({
    alerts: { FilesNodeUnreachable: peer },
    made: "a node is killed",
    ended: "it is started",
    make: () => kill(victim),
    mend: () => startNode(victim),
  });
  await areServing();
  await troubles.happen({
    alerts: { FilesNoMajority: `instance="${at[9]}"` },
    made: "two nodes of three are killed",
    ended: "they are started",
    make: () => Promise.all([kill(victim), kill(other)]),
    mend: () => {
      startNode(victim);
      startNode(other);
    },
  });
  await working();
}

/** Overwrites some bytes of every block in every data file, as the slot of an earlier version may be free. */
function damage(folder: string): void {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".blocks"),
  );
  expect(files.length).toBeGreaterThan(0);
  for (const name of files) {
    const path = join(folder, name);
    const { size } = statSync(path);
    const file = openSync(path, "r+");
    for (let place = 0; place + 8 <= size; place += 4_096) writeSync(file, "damaged ", place);
    closeSync(file);
  }
}
