import { mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { childrenOf, eventually, leasehold, type Running } from "../../../../../test/support/built.js";

/** The commands with leases on three directories, as separate processes. */

let root: string;
let endpoints: string;
const running: Running[] = [];

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "leasehold-cli-"));
  const stores = ["a", "b", "c"].map((name) => join(root, name));
  for (const store of stores) mkdirSync(store);
  endpoints = `delta+file://${stores.join(",")}?ttlMax=2s&maxStoreLatency=500ms`;
});

afterAll(() => {
  for (const { process: child } of running) child.kill("SIGKILL");
  rmSync(root, { recursive: true });
});

function start(command: string, ...words: string[]): Running {
  const started = leasehold([command, "--endpoints", endpoints, ...words]);
  running.push(started);
  return started;
}

const says = (command: Running, text: string) =>
  eventually(`${text} in ${command.stdout()}${command.stderr()}`, () => command.stdout().includes(text));

test("run, hold, ls, get, watch, status, release and elect work on stores", async () => {
  const ran = await start("run", "nightly", "--", "sh", "-c", 'echo "$LEASE_NAME $LEASE_TOKEN"').finished;
  expect(ran).toMatchObject({ code: 0, stdout: "nightly 1\n", stderr: "" });
  const watch = start("watch", "-o", "ndjson");
  const hold = start("hold", "demo", "--label", "by hand");
  await says(hold, "held, token 1");
  await says(watch, '"state":"held"');
  expect((await start("run", "--try", "demo", "--", "true").finished).code).toBe(75);
  const got = await start("get", "demo").finished;
  expect(got.stdout).toMatch(/^label +.* pid \d+: by hand$/m);
  expect(got.stdout).toMatch(/^STORE +STATE +LEASE THAT IT KNOWS$/m);
  expect(got.stdout).toMatch(/^file:.*\/a +ready +/m);
  expect((await start("ls", "--names").finished).stdout).toBe("demo\n");
  const asked = await start("release", "demo").finished;
  expect(asked.stdout).toContain("was asked to release demo");
  expect((await hold.finished).code).toBe(0);
  await says(watch, '"state":"free"');
  watch.process.kill("SIGINT");
  expect((await watch.finished).code).toBe(0);
  const led = await start("elect", "leader", "--", "sh", "-c", "echo led").finished;
  expect(led).toMatchObject({ code: 0, stdout: expect.stringContaining("led") });
});

test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)("%s makes hold release the lease", async (signal) => {
  const hold = start("hold", "given back");
  await says(hold, "held, token");
  hold.process.kill(signal);
  expect(await hold.finished).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("released: interrupted"),
  });
  expect((await start("run", "--try", "given back", "--", "true").finished).code).toBe(0);
});

test.skipIf(process.platform !== "linux")(
  "a run that waits long has no guard meanwhile, and another for its command",
  async () => {
    const hold = start("hold", "awaited");
    await says(hold, "held, token");
    const run = start("run", "awaited", "--", "sh", "-c", "echo ran; exit 4");
    const behind = await eventually("the process behind is there", () => childrenOf(run.pid)[0]);
    await eventually("a guard is started at once", () => childrenOf(behind).length === 1);
    await eventually("it ends while nothing happens", () => childrenOf(behind).length === 0);
    hold.process.kill("SIGTERM");
    expect(await run.finished).toMatchObject({ code: 4, stdout: "ran\n", stderr: "" });
  },
);

test("hold reports no release that may not have arrived", async () => {
  const stores = ["a", "b", "c"].map((name) => join(root, "away", name));
  for (const store of stores) mkdirSync(store, { recursive: true });
  const hold = leasehold([
    "hold",
    "demo",
    "--endpoints",
    `delta+file://${stores.join(",")}?ttlMax=30s&maxStoreLatency=500ms`,
  ]);
  running.push(hold);
  await says(hold, "held, token");
  for (const store of stores.slice(1)) renameSync(store, `${store} gone`);
  hold.process.kill("SIGTERM");
  const ended = await hold.finished;
  expect(ended).toMatchObject({ code: 69, stdout: expect.not.stringContaining("released") });
  expect(ended.stderr).toMatch(
    /^leasehold: interrupted; the release of demo could not be confirmed \(.*\): unless it arrives, the lease ends by itself in \d+\.\d s\n$/,
  );
});

test("by the handle of hold --detach one hold or run continues the lease, and no second", async () => {
  const stores = ["a", "b", "c"].map((name) => join(root, "handed", name));
  for (const store of stores) mkdirSync(store, { recursive: true });
  // A handle is valid for one TTL, and a busy machine starts processes slowly.
  const long = `delta+file://${stores.join(",")}?ttlMax=5m&maxStoreLatency=500ms`;
  const onLong = (command: string, ...words: string[]) => {
    const started = leasehold([command, "--endpoints", long, ...words]);
    running.push(started);
    return started;
  };
  const isFree = async () => (await onLong("run", "--try", "web", "--", "true").finished).code === 0;

  const detached = await onLong("hold", "web", "--detach").finished;
  expect(detached).toMatchObject({ code: 0, stderr: "" });
  const handle = detached.stdout.trimEnd();
  expect(handle).toMatch(/^[\w.%~-]+$/);
  expect(await isFree()).toBe(false);
  const hold = onLong("hold", "--attach", handle, "-o", "ndjson");
  await says(hold, '"type":"held","resource":"web"');
  const second = await onLong("hold", "--attach", handle).finished;
  expect(second).toMatchObject({ code: 75, stdout: "" });
  expect(second.stderr).toMatch(/^leasehold: the detached lease on "web" cannot be attached: .*\n$/);
  const third = onLong("run", "--attach", handle, "--conflict-exit-code", "9", "--", "echo", "runs");
  expect(await third.finished).toMatchObject({ code: 9, stdout: "" });
  hold.process.kill("SIGTERM");
  expect((await hold.finished).code).toBe(0);

  const told = await onLong("hold", "web", "--detach", "-o", "json").finished;
  const ticket = JSON.parse(told.stdout) as { type: string; resource: string; token: string; handle: string };
  expect(ticket).toMatchObject({ type: "detached", resource: "web" });
  const words = ["--", "sh", "-c", 'echo "$LEASE_NAME $LEASE_TOKEN"'];
  const ran = await onLong("run", "--attach", ticket.handle, ...words).finished;
  expect(ran).toMatchObject({ code: 0, stderr: "" });
  const [name, token] = ran.stdout.trim().split(" ");
  expect(name).toBe("web");
  expect(BigInt(token!)).toBeGreaterThan(BigInt(ticket.token));
  expect(await isFree()).toBe(true);
});

test("hold --detach that is interrupted before it has a handle does not end with 0", async () => {
  const holder = start("hold", "taken");
  await says(holder, "held, token");
  const waiting = start("hold", "taken", "--detach");
  await says(start("watch", "--exact", "taken", "-o", "ndjson"), '"state":"held"');
  waiting.process.kill("SIGTERM");
  // 143, unless the machine is so busy that Node had not started yet.
  const { code, stdout } = await waiting.finished;
  expect(code).not.toBe(0);
  expect(stdout).toBe("");
  holder.process.kill("SIGTERM");
});

test("run, hold, ls, get, status, release and doctor work on flease+…", async () => {
  const stores = ["a", "b", "c"].map((name) => join(root, "grid", name));
  for (const store of stores) mkdirSync(store, { recursive: true });
  const grid = `flease+file://${stores.join(",")}?maxStoreLatency=500ms&ttlMax=4s`;
  const onGrid = (command: string, ...words: string[]) => {
    const started = leasehold([command, "--endpoints", grid, ...words]);
    running.push(started);
    return started;
  };
  const ran = await onGrid("run", "nightly", "--", "sh", "-c", 'echo "$LEASE_NAME"').finished;
  expect(ran).toMatchObject({ code: 0, stdout: "nightly\n", stderr: "" });
  const hold = onGrid("hold", "demo");
  await says(hold, "held, token");
  expect((await onGrid("run", "--try", "demo", "--", "true").finished).code).toBe(75);
  expect((await onGrid("ls", "--names").finished).stdout).toBe("demo\n");
  expect((await onGrid("get", "demo").finished).stdout).toMatch(/^store-01 +file:.*\/a +ready/m);
  const status = await onGrid("status").finished;
  expect(status.code).toBe(0);
  expect(status.stdout).toMatch(/^file:.*\/a +ready$/m);
  const asked = await onGrid("release", "demo").finished;
  expect(asked).toMatchObject({ code: 0, stdout: expect.stringContaining("was asked to release demo") });
  expect(await hold.finished).toMatchObject({ code: 0, stdout: expect.stringContaining('asks for "demo"') });
  const short = await leasehold(["ls", "--endpoints", grid.replace("=4s", "=2s")]).finished;
  expect(short).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("4·maxStoreLatency + 2·maxClockSkew"),
  });
  const doctor = await onGrid("doctor", "--duration", "50ms").finished;
  expect(doctor).toMatchObject({ code: 0, stdout: expect.stringContaining("Flease on stores") });
});

test("break makes an obedient holder release the lease, and another one lose it at its end", async () => {
  const hold = start("hold", "broken");
  await says(hold, "held, token");
  await start("break", "broken").finished;
  expect(await hold.finished).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("has broken the lease"),
  });
  const run = start("run", "broken", "--", "sh", "-c", "echo holds; exec sleep 30");
  await says(run, "holds");
  expect((await start("break", "broken").finished).stdout).toContain("is broken: it runs out in");
  const ended = await run.finished;
  expect(ended.code).toBe(76);
  expect(ended.stderr).toContain("has broken the lease");
});

test("status shows an absent store, and ends with 69 without a majority", async () => {
  renameSync(join(root, "c"), join(root, "gone"));
  const one = await start("status").finished;
  expect(one.code).toBe(0);
  expect(one.stdout).toMatch(/^file:.*\/a +ready$/m);
  expect(one.stdout).toMatch(/c +unreachable: .*it does not exist, or is not mounted/);
  renameSync(join(root, "b"), join(root, "gone too"));
  const two = await start("ls", "--timeout", "1s").finished;
  expect(two).toMatchObject({ code: 69, stdout: "" });
  expect(two.stderr).toMatch(/no majority of the 3 stores/);
  renameSync(join(root, "gone"), join(root, "c"));
  renameSync(join(root, "gone too"), join(root, "b"));
});

test("doctor probes, measures and proposes; its exit code reports absent and unsuitable stores, and misuse", async () => {
  const well = await start("doctor", "--duration", "200ms", "-o", "json").finished;
  expect(well).toMatchObject({ code: 0, stderr: "" });
  const report = JSON.parse(well.stdout) as {
    stores: { findings: { ok: boolean }[]; measurement: { writes: { samples: number; p50: number } } }[];
    farm: { kind: string; leaseMsMax: number };
    proposal: { endpoints: string[] };
  };
  expect(report.stores).toHaveLength(3);
  for (const { findings, measurement } of report.stores) {
    expect(findings.length).toBeGreaterThan(5);
    expect(findings.every(({ ok }) => ok)).toBe(true);
    expect(measurement.writes.samples).toBeGreaterThan(1);
    expect(measurement.writes.p50).toBeGreaterThan(0);
  }
  expect(report.farm).toMatchObject({ kind: "farm", leaseMsMax: 2_000 });
  // Three directories on one disk are not three disks.
  expect((report as { oneDisk?: string[][] }).oneDisk).toEqual([
    expect.arrayContaining([`file://${root}/a`]),
  ]);
  expect(report.proposal.endpoints[0]).toMatch(/\?maxStoreLatency=\d+(?:ms|s)&ttlMax=\d/);
  // The proposed command works as printed.
  const proposed = report.proposal.endpoints.join(",");
  expect((await leasehold(["ls", "--endpoints", proposed]).finished).code).toBe(0);

  const doctor = (...words: string[]) => leasehold(["doctor", "--duration", "50ms", ...words]).finished;
  const away = await doctor("--endpoints", `delta+file://${root}/nowhere`);
  expect(away.code).toBe(69);
  expect(away.stdout).toContain("it does not exist, or is not mounted");
  expect((await doctor("--endpoints", "delta+s3://x/y?endpoint=nonsense")).code).toBe(2);
  expect((await doctor("--endpoints", `delta+file://${root}/a,${root}/a`)).code).toBe(78);
});

test.each([
  [["ls", "--cluster", "x"], "cluster has no meaning for delta+file"],
  [["ls", "--role", "observer"], "role has no meaning for delta+file"],
  [["run", "--ttl", "1h", "x", "--", "true"], "--ttl 1h is outside what the cluster allows: 1.5s to 2s"],
])("%j is refused with 2", async ([command, ...words], why) => {
  const refused = await start(command!, ...words).finished;
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining(why) });
});
