import { randomBytes } from "node:crypto";
import { afterEach, expect, test } from "vitest";
import { open } from "leasehold";
import { createLogger } from "leasehold/logs";
import { type LocalCluster, startLocalCluster } from "../support/local-cluster.js";

/** Audit logs of real members. */

type Line = Readonly<Record<string, unknown>>;

let cluster: LocalCluster | undefined;
afterEach(() => cluster?.close());

async function logged() {
  const key = randomBytes(32).toString("hex");
  const lines: Line[] = [];
  const texts: string[] = [];
  const write = (line: string) => {
    texts.push(line);
    lines.push(JSON.parse(line) as Line);
  };
  cluster = await startLocalCluster({ key, logger: createLogger({ level: "error", write }) });
  const of = (event: string) => lines.filter((line) => line["event"] === event);
  return { key, of, texts, urls: cluster.urls };
}

test("members log breaks, hand-overs and requests for release with their authors, and refused keys, but no secret", async () => {
  const { key, of, texts, urls } = await logged();
  await using holder = await open(...urls, { key, name: "holder" });
  await using waiter = await open(...urls, { key, name: "waiter" });
  await using operator = await open(...urls, { key, name: "operator" });
  const lease = await holder.acquire("x");
  const waiting = waiter.acquire("x");
  await expect.poll(async () => (await operator.explain("x")).waiting).toBe(1);
  const who = { audit: true, by: "address 127.0.0.1", name: operator.self };
  await operator.handOver("x", waiter.self);
  await expect
    .poll(() => of("lease-handed-over")[0])
    .toMatchObject({ ...who, resource: "x", to: waiter.self });
  expect(of("release-requested")[0]).toMatchObject({ ...who, holder: holder.self });
  await lease.release();
  const second = await waiting;
  await operator.break("x");
  await expect.poll(() => of("lease-broken")[0]).toMatchObject({ ...who, holder: waiter.self });
  await second.release();
  const wrong = randomBytes(32).toString("hex");
  await expect(open(...urls, { key: wrong, timeout: "1s" })).rejects.toMatchObject({
    code: expect.any(String) as string,
  });
  expect(of("credential-refused")[0]).toMatchObject({ audit: true, cause: "key" });
  for (const secret of [key, wrong]) expect(texts.filter((text) => text.includes(secret))).toEqual([]);
});

test("members log a call that an observer is not allowed to make", async () => {
  const { key, of, urls } = await logged();
  await using holder = await open(...urls, { key });
  await using lease = await holder.acquire("x");
  await using observer = await open(...urls, { key, role: "observer", name: "looker" });
  await expect(observer.break(lease.resource)).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
  expect(of("permission-denied")[0]).toMatchObject({ audit: true, call: "break", name: observer.self });
});
