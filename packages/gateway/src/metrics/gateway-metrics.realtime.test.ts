import { type Leases, open } from "leasehold";
import { createMetrics } from "leasehold/metrics";
import { afterEach, expect, it } from "vitest";
import { startGateway } from "../index.js";
import { routesOf } from "../api/routes.js";
import { Gateway } from "../sessions/gateway.js";
import { realWorld } from "leasehold/runtime";

const ends: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

let grounds = 0;
async function observed() {
  grounds += 1;
  const leases = await open(`memory:gateway-metrics-${grounds}`);
  const metrics = createMetrics();
  metrics.observe(leases);
  const gateway = await startGateway(leases, { address: "127.0.0.1:0", metrics });
  let isOpen = true;
  const close = async (): Promise<void> => {
    if (isOpen) await gateway.close();
    isOpen = false;
  };
  ends.push(() => leases.close(), close);
  const lines = (name: string): string[] =>
    metrics
      .text()
      .split("\n")
      .filter((line) => line.startsWith(`leasehold_gateway_${name}`))
      .map((line) => line.slice("leasehold_gateway_".length));
  const post = async (path: string, body: object = {}, headers = {}): Promise<Record<string, unknown>> => {
    const answer = await fetch(`${gateway.url}${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    });
    return (await answer.json()) as Record<string, unknown>;
  };
  const end = (path: string) => fetch(`${gateway.url}${path}`, { method: "DELETE" });
  return { leases, metrics, gateway, lines, post, end, close };
}

it("requests count by route and outcome, refusals by reason, sessions by the cause of their end", async () => {
  const { gateway, lines, post, end, close } = await observed();
  const gone = new AbortController();
  const watch = await fetch(`${gateway.url}/v1/watch`, { signal: gone.signal });
  const { session } = await post("/v1/sessions", { ttl: "20s" });
  await post("/v1/sessions", { ttl: "30s" });
  const alone = await post("/v1/leases", { resource: "held" });
  const keyed = { "idempotency-key": "one", prefer: "wait=0" };
  expect(await post("/v1/leases", { session, resource: "held", wait: "9s" }, keyed)).toMatchObject({
    waiting: true,
  });
  await post("/v1/leases", { resource: "held", wait: 0 });
  await post(`/v1/sessions/${"x".repeat(24)}/renew`);
  await fetch(`${gateway.url}/guessed`);
  expect(lines("sessions ")).toEqual(["sessions 3"]);
  expect(lines("watches ")).toEqual(["watches 1"]);
  expect(lines("quota_used_ratio{")).toEqual([
    expect.stringMatching(/^quota_used_ratio\{quota="connections"\} 0\.000[1-9]/),
    `quota_used_ratio{quota="watches"} ${1 / 24_000}`,
    'quota_used_ratio{quota="changes"} 0',
    `quota_used_ratio{quota="sessions"} ${3 / 100_000}`,
    `quota_used_ratio{quota="leases"} ${2 / 400_000}`,
  ]);
  expect(lines("refusals").sort()).toEqual([
    'refusals_total{reason="http_404"} 1',
    'refusals_total{reason="lease_held"} 1',
    'refusals_total{reason="session_gone"} 1',
  ]);
  await post("/v1/sessions", { ttl: "1s" });
  gone.abort();
  await watch.text().catch(() => undefined);
  const [lease] = alone["leases"] as [{ lease: string }];
  await end(`/v1/leases/${lease.lease}`);
  await end(`/v1/sessions/${session as string}`);
  await expect.poll(() => lines("sessions ")).toEqual(["sessions 1"]);
  await close();
  expect(lines("sessions_ended").sort()).toEqual([
    'sessions_ended_total{cause="closed"} 1',
    'sessions_ended_total{cause="expired"} 1',
    'sessions_ended_total{cause="released"} 1',
    'sessions_ended_total{cause="stopped"} 1',
    'sessions_ended_total{cause="unused"} 1',
  ]);
  const counts = lines("request_duration_seconds_count").map((line) => /\{(.*)\} (\d+)/.exec(line)!.slice(1));
  expect(Object.fromEntries(counts)).toEqual({
    'route="watch",outcome="cut"': "1",
    'route="POST /v1/sessions",outcome="ok"': "3",
    'route="POST /v1/leases",outcome="ok"': "1",
    'route="POST /v1/leases",outcome="waiting"': "1",
    'route="POST /v1/leases",outcome="refused"': "1",
    'route="POST /v1/sessions/{id}/renew",outcome="refused"': "1",
    'route="other",outcome="refused"': "1",
    'route="DELETE /v1/leases/{id}",outcome="ok"': "1",
    'route="DELETE /v1/sessions/{id}",outcome="ok"': "1",
  });
});

it("whatever clients request, the number of series is no more than the routes times the outcomes", async () => {
  const { leases, metrics, gateway, post } = await observed();
  const routes = routesOf(leases, new Gateway(leases, { ...realWorld(), newId: () => "" }));
  // The four are health, openapi.json, watches and others. Each has five outcomes; a metric shows 200 series
  // at most.
  expect((routes.length + 4) * 5).toBeLessThanOrEqual(200);
  for (let number = 0; number < 10; number += 1) {
    await post("/v1/leases", { resource: `secret/${number}`, ttl: "1s" });
    for (const path of [`/secret/${number}`, `/v1/leases/secret-${number}`, `/v1/watch?secret=${number}`])
      await fetch(`${gateway.url}${path}`, { method: "DELETE" });
  }
  const text = metrics.text();
  expect(text).not.toContain("secret");
  expect(text.match(/^leasehold_gateway_request_duration_seconds_count/gm)?.length).toBe(4);
});

it("a gateway is ready while its ground answers, and alive all the time", async () => {
  const { leases, metrics, gateway } = await observed();
  const { address, close } = await metrics.serve("127.0.0.1:0");
  ends.push(close);
  const get = async (url: string): Promise<[number, string]> => {
    const answer = await fetch(url);
    return [answer.status, await answer.text()];
  };
  const urls = [gateway.url, `http://${address}`];
  for (const url of urls) {
    expect(await get(`${url}/livez`)).toEqual([200, "ok\n"]);
    expect(await get(`${url}/healthz`)).toEqual([200, "ok\n"]);
    const verbose = "[+] serving: the gateway\n[+] ground: it answers\nok\n";
    expect(await get(`${url}/readyz?verbose`)).toEqual([200, verbose]);
  }
  unanswered(leases);
  const failed = [503, "[-] ground: it does not answer\nnot ready\n"];
  for (const url of urls) {
    await expect.poll(() => get(`${url}/readyz`), { timeout: 5_000, interval: 200 }).toEqual(failed);
    expect((await get(`${url}/livez`))[0]).toBe(200);
  }
});

/** Makes the ground behave as if its members were gone. */
function unanswered(leases: Leases): void {
  leases.holder = (resource: string) => Promise.resolve({ resource, state: "unknown" });
}
