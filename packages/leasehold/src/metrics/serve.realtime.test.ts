import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect, test } from "vitest";
import { createMetrics } from "../entry/metrics.js";
import { startMember } from "../index.js";
import { freePorts } from "../../../../test/free-ports.js";
import { eventually } from "../../../../test/support/built.js";

async function get(
  address: string,
  path: string,
  headers = {},
): Promise<{ status: number; text: string; type: string }> {
  const answer = await fetch(`http://${address}${path}`, { headers });
  return { status: answer.status, text: await answer.text(), type: answer.headers.get("content-type")! };
}

test("a member is alive and not ready while it recovers, says why, and has its numbers", async () => {
  const [port] = (await freePorts(1)) as [number];
  const members = { a: `127.0.0.1:${port}` };
  const timing = { ttlMax: "2s", maxClockSkew: "100ms" } as const;
  const member = await startMember({ id: "a", members, ...timing });
  const metrics = createMetrics();
  metrics.observeMember(member);
  metrics.observeProcess();
  metrics.observe(member.leases);
  const { address, close } = await metrics.serve("127.0.0.1:0");
  expect(await get(address, "/livez")).toMatchObject({ status: 200, text: "ok\n" });
  const early = await get(address, "/readyz");
  expect(early.status).toBe(503);
  expect(early.text).toMatch(
    /^\[-\] recovery: its vote counts in \d s: .*\n\[-\] vote: recovering\nnot ready\n$/,
  );
  await member.ready();
  const verbose = await get(address, "/readyz?verbose");
  expect(verbose).toMatchObject({ status: 200, type: "text/plain" });
  expect(verbose.text).toContain("[+] majority: connected with 0 of 0 other members\n");
  expect(verbose.text).toContain("[+] vote: ready\nok\n");
  expect(await get(address, "/healthz")).toMatchObject({ status: 200, text: "ok\n" });
  await member.leases.using("x", () => undefined);
  const { text } = await get(address, "/metrics");
  for (const line of [
    'leasehold_member_ready{state="ready"} 1',
    'leasehold_member_ready{state="recovering"} 0',
    "leasehold_member_skew_bound_seconds 0.1",
    'leasehold_acquisitions_total{outcome="acquired"} 1',
  ])
    expect(text.split("\n")).toContain(line);
  const accept = { accept: "application/openmetrics-text;version=1.0.0,text/plain;q=0.5" };
  const open = await get(address, "/metrics", accept);
  expect(open.type).toMatch(/^application\/openmetrics-text/);
  expect(open.text).toMatch(/leasehold_acquisition_duration_seconds_bucket.* # \{resource="x"\}/);
  expect((await get(address, "/other")).status).toBe(404);
  expect((await fetch(`http://${address}/metrics`, { method: "POST" })).status).toBe(405);
  await expect(metrics.serve(address)).rejects.toMatchObject({ code: "INVALID_CONFIG" });
  await expect(metrics.serve("nowhere")).rejects.toMatchObject({ code: "INVALID_URL" });
  await close();
  await member.close();
});

test("slow and hasty clients keep nobody from the health", async () => {
  const metrics = createMetrics();
  let reads = 0;
  metrics.observeHealth(() => [{ name: "x", isPassed: ++reads > 0, detail: "" }]);
  const { address, close } = await metrics.serve("127.0.0.1:0");
  const [host, port] = address.split(":") as [string, string];
  const open = (text: string): Socket => {
    const client = connect(Number(port), host).on("error", () => undefined);
    client.write(text);
    return client.resume();
  };
  const hasty = open("GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n".repeat(1_000));
  await once(hasty, "close");
  // As many as the server accepts.
  const slow = "POST /readyz HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n";
  const clients = Array.from({ length: 64 }, () => open(slow));
  await Promise.all(clients.map((client) => once(client, "connect")));
  const isAlive = () =>
    get(address, "/livez").then(
      ({ status }) => status === 200,
      () => false,
    );
  await eventually("the health", isAlive, 60_000);
  expect(reads).toBe(1);
  for (const client of clients) client.destroy();
  await close();
});
