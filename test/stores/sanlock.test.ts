import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { decodeRecord, encodeRecord } from "../../packages/leasehold/src/delta/record/codec.js";
import type { DeltaRecord } from "../../packages/leasehold/src/delta/record/record.js";
import type { OpenedStore } from "../../packages/leasehold/src/stores/common/contract.js";
import { openSanlockStore } from "../../packages/leasehold/src/stores/sanlock/open.js";

const execute = promisify(execFile);
const program = "/usr/sbin/sanlock";

const record: DeltaRecord = {
  resource: "3",
  epoch: 1n,
  number: 1n,
  writer: "leasehold-test:1",
  nonce: 1,
  state: "held",
  leaseMs: 8_000,
  delayMs: 500,
};

describe.skipIf(!existsSync(program))("beside the real sanlock", () => {
  let directory: string;
  let path: string;
  let store: OpenedStore;

  /** What it says of itself on the last line, and all lines. */
  const sanlock = async (action: string, host: number): Promise<string> => {
    const args = ["direct", action, "-s", `LEASES:${host}:${path}:0`, "-o", "1"];
    return (await execute(program, args, { timeout: 120_000 })).stdout;
  };
  const read = async (host: number): Promise<DeltaRecord | undefined> => {
    const answer = await store.perform({ op: "read", register: `lease/${host}` });
    if (answer.kind !== "cells") throw new Error(JSON.stringify(answer));
    return answer.cells.map(decodeRecord)[0];
  };
  const put = async (changed: Partial<DeltaRecord>): Promise<void> => {
    const next = encodeRecord({ ...record, ...changed });
    const answer = await store.perform({ op: "put", register: "lease/3", next });
    expect(answer).toMatchObject({ kind: "written" });
  };

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "leasehold-sanlock-"));
    path = join(directory, "leases");
    await writeFile(path, "");
    await truncate(path, 1 << 20);
    await sanlock("init", 0);
    store = await openSanlockStore(new URL(`sanlock:${path}?lockspace=LEASES`), { writer: "w" });
  });

  afterEach(async () => {
    await store.close();
    await rm(directory, { recursive: true });
  });

  test("sanlock reads what we write", async () => {
    await put({ epoch: 5n, number: 99n });
    const leader = await sanlock("read_leader", 3);
    expect(leader).toContain("read_leader done 0");
    for (const line of ["owner_id 3", "owner_generation 5", "timestamp 100", "io_timeout 1"]) {
      expect(leader).toContain(line);
    }
    expect(leader).toContain("resource_name leasehold-test:1");
    expect((await execute(program, ["direct", "dump", path])).stdout).toMatch(
      /LEASES +leasehold-test:1 0000000100 0003 0005/,
    );
  });

  test("sanlock takes no host id of ours while we renew, and we see one of its own as held, then released", async () => {
    await put({});
    let number = 1n;
    const timer = setInterval(() => void put({ number: ++number, nonce: Number(number) }), 500);
    try {
      const outcome = await sanlock("acquire_id", 3).catch((error: { stdout: string }) => error.stdout);
      expect(outcome).toMatch(/acquire_id done -\d+/);
    } finally {
      clearInterval(timer);
    }
    expect(await read(3)).toMatchObject({ state: "held", writer: "leasehold-test:1" });

    expect(await sanlock("acquire_id", 4)).toContain("acquire_id done 0");
    const taken = await read(4);
    expect(taken).toMatchObject({ state: "held", epoch: 1n, leaseMs: 68_000, delayMs: 1_000 });
    expect(await sanlock("renew_id", 4)).toContain("done 0");
    const renewed = (await read(4))!;
    expect(renewed).toMatchObject({ state: "held", epoch: 1n });
    expect(renewed.number).toBeGreaterThan(taken!.number);
    expect(await sanlock("release_id", 4)).toContain("done 0");
    const released = (await read(4))!;
    expect(released.state).toBe("free");
    expect(released.number).toBeGreaterThan(renewed.number);
  });

  test("sanlock takes a host id that we have released, with the next generation, and we see that it is later", async () => {
    await put({ epoch: 5n, number: 99n, state: "free" });
    expect(await sanlock("acquire_id", 3)).toContain("acquire_id done 0");
    const taken = (await read(3))!;
    expect(taken).toMatchObject({ state: "held", epoch: 6n });
    expect(taken.number).toBeGreaterThan(99n);
  });
});
