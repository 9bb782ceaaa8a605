import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { freePorts } from "../free-ports.js";
import { type Finished, leasehold } from "../support/built.js";
import { layBatch, sectorBytes } from "../../packages/leasehold/src/journal/batch.js";
import { Authority } from "../support/pki.js";
import { CoreCluster } from "./support/core-cluster.js";

/** Refusals by a server: one clear line, and an exit code. */
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "lh-refused-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function words(...more: string[]): Promise<string[]> {
  const [client, peer] = await freePorts(2);
  const peerUrl = `http://127.0.0.1:${peer}`;
  const urls = ["--listen-client-urls", `http://127.0.0.1:${client}`, "--listen-peer-urls", peerUrl];
  return [
    "core",
    "--data-dir",
    join(folder, "data"),
    ...urls,
    "--initial-advertise-peer-urls",
    peerUrl,
    ...more,
  ];
}

async function refusal(...more: string[]): Promise<Finished> {
  const running = leasehold(await words(...more));
  const timer = setTimeout(() => running.process.kill("SIGKILL"), 20_000);
  const finished = await running.finished;
  clearTimeout(timer);
  expect(finished.stderr.trim().split("\n")).toHaveLength(1);
  return finished;
}

/** A data directory with something in it, whose server has ended. */
async function used(): Promise<string> {
  const cluster = await CoreCluster.start(1);
  const [server] = cluster.servers;
  for (let number = 0; number < 50; number++) await server!.client.put(`k${number}`, "x".repeat(100));
  await server!.kill();
  cpSync(server!.dataDir, join(folder, "data"), {
    recursive: true,
    filter: (path) => !path.endsWith("lock"),
  });
  await cluster[Symbol.asyncDispose]();
  return join(folder, "data");
}

describe("settings", () => {
  test.each([
    [["--election-timeout", "200"], /--election-timeout 200 must be 5 heartbeat intervals/],
    [["--heartbeat-interval", "0"], /--heartbeat-interval is "0"/],
    [["--initial-cluster", "a=http://127.0.0.1:1"], /does not name this server, "default"/],
    [["--initial-cluster", "default=nonsense"], /not http:\/\/host:port/],
    [["--initial-cluster", "default=http://127.0.0.1:1"], /--initial-advertise-peer-urls is/],
    [["--initial-cluster-state", "old"], /must be "new" or "existing"/],
    [["--initial-cluster-state", "existing"], /--initial-cluster names no other server/],
    [["--cert-file", "x"], /--cert-file and --key-file are needed together/],
    [["--client-cert-auth", "--cert-file", "x", "--key-file", "y"], /needs --trusted-ca-file/],
    [["--cert-file", "/nowhere", "--key-file", "/nowhere"], /\/nowhere cannot be read/],
    [["--listen-client-urls", "http://0.0.0.0:0"], /plain TCP beyond loopback/],
    [["--listen-client-urls", "https://127.0.0.1:1"], /there is no certificate/],
    [["--nonsense"], /unknown option/],
  ])("%s are refused with exit code 2, and the reason is said", async (more, expected) => {
    const { code, stderr } = await refusal(...more);
    expect(stderr).toMatch(expected);
    expect(code).toBe(2);
  });

  test("an expired certificate is refused with exit code 2", async () => {
    const authority = new Authority();
    try {
      const { cert, key } = authority.issue([], { fromDays: -3, toDays: -1 });
      const { code, stderr } = await refusal("--cert-file", String(cert), "--key-file", String(key));
      expect(stderr).toMatch(/expired on/);
      expect(code).toBe(2);
    } finally {
      authority.remove();
    }
  });
});

/** Followed by space that the journal has allocated and not used. */
function usedBytes(journal: Buffer): number {
  return journal.findLastIndex((byte) => byte !== 0) + 1;
}

/** The next write, of which only one sector reached the disk. */
function tornWrite(journal: Buffer): Buffer {
  const end = usedBytes(journal);
  const before = journal.readUInt32LE(end - 4) & 0x0fff_ffff;
  const { bytes } = layBatch([Buffer.alloc(2_000, 1)], 0, end, before + 1);
  return bytes.subarray(0, sectorBytes - (end % sectorBytes));
}

describe("the data directory", () => {
  test("in use by another process is refused with exit code 77", async () => {
    const cluster = await CoreCluster.start(1);
    const { code, stderr } = await refusal("--data-dir", cluster.servers[0]!.dataDir);
    expect(stderr).toMatch(/another process uses the data directory/);
    expect(code).toBe(77);
    await cluster[Symbol.asyncDispose]();
  });

  test("of a newer version is refused with exit code 77", async () => {
    const data = await used();
    const path = join(data, "member.json");
    const record = JSON.parse(readFileSync(path, "utf8")) as object;
    writeFileSync(path, JSON.stringify({ ...record, format: 4 }));
    const { code, stderr } = await refusal();
    expect(stderr).toMatch(/is of a newer version of Leasehold \(format 4; this one knows 3\)/);
    expect(code).toBe(77);
  });

  test("with a damaged journal, a journal that is missing, or one without an owner is refused", async () => {
    const data = await used();
    const wal = join(data, "wal");
    const path = join(wal, readdirSync(wal)[0]!);
    const damaged = readFileSync(path);
    damaged[Math.floor(usedBytes(damaged) / 2)]! ^= 1;
    writeFileSync(path, damaged);
    const broken = await refusal();
    expect(broken.stderr).toMatch(/000000000001.wal is damaged at byte \d+/);
    expect(broken.code).toBe(77);

    rmSync(wal, { recursive: true });
    expect((await refusal()).stderr).toMatch(
      /the journal in .* is empty, and this server has taken part before/,
    );
    mkdirSync(wal, { recursive: true });
    rmSync(join(data, "member.json"));
    expect((await refusal()).stderr).toMatch(/member.json, which says whose it is, is missing/);
  });

  test("with a damaged snapshot, or one that is missing, is refused", async () => {
    const data = await used();
    const snapshots = join(data, "snapshots");
    const path = join(snapshots, readdirSync(snapshots)[0]!);
    const bytes = readFileSync(path);
    bytes[bytes.length - 9]! ^= 1;
    writeFileSync(path, bytes);
    const { code, stderr } = await refusal();
    expect(stderr).toMatch(/snapshot .* is damaged/);
    expect(code).toBe(77);
    rmSync(path);
    expect((await refusal()).stderr).toMatch(/goes on from a snapshot at entry 1, which is missing/);
  });

  test("torn by a crash in the middle of a write is opened without the bytes of that write", async () => {
    const data = await used();
    const wal = join(data, "wal");
    const path = join(wal, readdirSync(wal)[0]!);
    const bytes = readFileSync(path);
    const end = usedBytes(bytes);
    const torn = tornWrite(bytes);
    bytes.set(torn, end);
    writeFileSync(path, bytes);
    const running = leasehold(await words());
    await expect.poll(() => running.stdout(), { timeout: 20_000 }).toContain("leads in term");
    expect(running.stderr()).toContain(`${torn.length} bytes of a write that a crash had cut off`);
    running.process.kill("SIGTERM");
    expect((await running.finished).code).toBe(0);
  });

  test("on a disk that becomes full stops its server, and keeps what was acknowledged", async () => {
    const mount = join(folder, "small");
    mkdirSync(mount);
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=2m", "tmpfs", mount]);
    try {
      const cluster = await CoreCluster.start(1, { dataDir: () => join(mount, "data") });
      const server = cluster.servers[0]!;
      let acknowledged = 0;
      for (; server.isRunning; acknowledged++) {
        const done = await server.client
          .put(`k${acknowledged}`, "x".repeat(20_000), 2_000)
          .catch(() => undefined);
        if (done === undefined) break;
      }
      expect(await server.ended()).toBe(1);
      expect(server.output).toMatch(/leasehold: the journal in .* cannot be written: the disk is full/);
      execFileSync("mount", ["-o", "remount,size=20m", mount]);
      server.start();
      await cluster.ready();
      for (let number = 0; number < acknowledged; number++)
        expect((await server.client.get(`k${number}`))?.length).toBe(20_000);
      expect(acknowledged).toBeGreaterThan(20);
      await cluster[Symbol.asyncDispose]();
    } finally {
      execFileSync("umount", ["-l", mount]);
    }
  });
});

describe("between servers", () => {
  test("another cluster's server, and one that has lost its data directory, are refused and told why", async () => {
    const cluster = await CoreCluster.start(3);
    try {
      const [first, second, third] = cluster.servers;
      const path = join(second!.dataDir, "member.json");
      await second!.kill();
      const record = JSON.parse(readFileSync(path, "utf8")) as object;
      writeFileSync(path, JSON.stringify({ ...record, format: 1, cluster: "abc" }));
      second!.start();
      await expect
        .poll(() => second!.output, { timeout: 10_000 })
        .toMatch(/its cluster id is abc, and ours is [0-9a-f]+/);
      await expect
        .poll(() => first!.output, { timeout: 10_000 })
        .toMatch(/s2 from .* was refused: its cluster id is abc/);
      await second!.kill();
      rmSync(second!.dataDir, { recursive: true });
      second!.start();
      await expect
        .poll(() => second!.output, { timeout: 10_000 })
        .toMatch(/s2 has come back without its data directory/);
      await first!.client.put("still", "works");
      expect(await third!.client.get("still")).toBe("works");
    } finally {
      await cluster[Symbol.asyncDispose]();
    }
  });
});
