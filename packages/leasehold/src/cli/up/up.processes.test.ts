import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePorts } from "../../../../../test/free-ports.js";
import {
  type Running,
  childrenOf,
  eventually,
  isAlive,
  leasehold,
} from "../../../../../test/support/built.js";
import type { LeaseView } from "../commands/lease-view.js";
import type { Change } from "./board.js";

/** The local cluster as a user starts it, with real member and worker processes. */

const running: Running[] = [];

function start(words: readonly string[]): Running {
  const started = leasehold(words);
  running.push(started);
  return started;
}

afterAll(() => {
  for (const { process: child } of running) child.kill("SIGKILL");
});

/** The first of a cluster's ports; `up` itself chooses another if one of the next is not free. */
async function freePort(): Promise<number> {
  const [first] = await freePorts(3);
  return first!;
}

function changesOf(up: Running): Change[] {
  const whole = up.stdout().split("\n").slice(0, -1);
  return whole.map((line) => JSON.parse(line) as Change);
}

/** The processes of `up`: members, workers, and their descendants. */
function allBelow(pid: number): number[] {
  const children = childrenOf(pid);
  return children.concat(children.flatMap(allBelow));
}

const ALL = 3 + 2;

describe.skipIf(process.platform !== "linux")("leasehold up", () => {
  let up: Running;
  let endpoints: string;

  beforeAll(async () => {
    const port = await freePort();
    endpoints = `127.0.0.1:${port}`;
    up = start([
      "up",
      "--port",
      String(port),
      "--workers",
      "2",
      "--resources",
      "2",
      "--no-kills",
      "-o",
      "ndjson",
    ]);
    await eventually(
      "a worker holds a lease",
      () => changesOf(up).some(({ kind }) => kind === "acquired"),
      20_000,
    );
  });

  test("reports that its members recover, and then that they are ready", () => {
    const members = changesOf(up).filter(({ kind }) => kind === "member");
    for (const id of ["a", "b", "c"]) {
      const texts = members.map(({ text }) => text).filter((text) => text.startsWith(`member ${id} `));
      expect(texts.at(0)).toMatch(/is recovering, ready in [0-4]\.\d s$/);
      expect(texts.at(1) ?? `member ${id} is ready`).toBe(`member ${id} is ready`);
    }
  });

  test("its leases can be listed, and a lease is acquired and refused from other terminals", async () => {
    const hold = start(["run", "--endpoints", endpoints, "demo/hello", "--", "sleep", "60"]);
    await eventually("the lease of the other terminal shows", () =>
      changesOf(up).some(({ kind, resource }) => kind === "acquired" && resource === "demo/hello"),
    );
    const list = await start(["ls", "demo/h", "--endpoints", endpoints, "-o", "json"]).finished;
    const [lease] = JSON.parse(list.stdout) as LeaseView[];
    expect(lease).toMatchObject({
      resource: "demo/hello",
      state: "held",
      token: expect.stringMatching(/^\d+$/),
    });
    const refused = await start(["run", "--try", "--endpoints", endpoints, "demo/hello", "--", "true"])
      .finished;
    expect(refused).toMatchObject({ code: 75, stdout: "" });
    // The second form appears if the hint about the holder is older than the attempt.
    expect(refused.stderr).toMatch(
      /^leasehold: demo\/hello: (held by .*, \d\.\d s left unless renewed|another holds the lease)\n$/,
    );
    hold.process.kill("SIGTERM");
    expect((await hold.finished).code).toBe(143);
    const next = await start([
      "run",
      "--endpoints",
      endpoints,
      "demo/hello",
      "--",
      "sh",
      "-c",
      "echo $LEASE_TOKEN",
    ]).finished;
    expect(BigInt(next.stdout)).toBeGreaterThan(BigInt(lease?.token ?? "0"));
  });

  test("status shows every member", async () => {
    const { code, stdout } = await start(["status", "--endpoints", endpoints]).finished;
    expect(code).toBe(0);
    expect(stdout.split("\n").filter((line) => /^[abc] +127\.0\.0\.1:\d+ +ready/.test(line))).toHaveLength(3);
  });

  test("starts a killed worker again", async () => {
    const workers = childrenOf(up.pid).slice(-2);
    process.kill(workers[0] ?? -1, "SIGKILL");
    await eventually("it is told", () => changesOf(up).some(({ kind }) => kind === "killed"));
    await eventually("it is started again", () => childrenOf(up.pid).length === ALL);
    expect(childrenOf(up.pid)).not.toContain(workers[0]);
  });

  test("a signal leaves nothing running", async () => {
    const processes = allBelow(up.pid);
    expect(processes.length).toBeGreaterThanOrEqual(ALL);
    up.process.kill("SIGINT");
    expect(await up.finished).toMatchObject({ code: 0, stderr: "" });
    expect(processes.filter(isAlive)).toEqual([]);
  });
});

describe.concurrent("each for itself", () => {
  test.skipIf(process.platform !== "linux")(
    "a killed up leaves nothing running either",
    async ({ expect }) => {
      const up = start(["up", "--port", String(await freePort()), "--workers", "2", "-o", "ndjson"]);
      await eventually("all are started", () => allBelow(up.pid).length === ALL);
      const processes = allBelow(up.pid);
      up.process.kill("SIGKILL");
      await eventually("all are gone", () => processes.every((pid) => !isAlive(pid)));
      expect(processes).toHaveLength(ALL);
    },
  );
  test("a refused configuration of a peer is one line", async ({ expect }) => {
    const refused = await start([
      "peer",
      "--id",
      "x",
      "--member",
      "a=127.0.0.1:1",
      "--member",
      "b=127.0.0.1:2",
    ]).finished;
    expect(refused).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(/^leasehold: .*\n$/),
    });
  });

  test("members that cannot be reached are one line", async ({ expect }) => {
    const port = await freePort();
    const words = ["ls", "--endpoints", `127.0.0.1:${port}`, "--timeout", "300ms"];
    const refused = await start(words).finished;
    expect(refused).toMatchObject({
      code: 69,
      stdout: "",
      stderr: expect.stringMatching(/^leasehold: .*\n$/),
    });
  });

  test("a peer reports when it listens, and ends on a signal", async ({ expect }) => {
    const port = await freePort();
    const peer = start([
      "peer",
      "--id",
      "a",
      "--member",
      `a=127.0.0.1:${port}`,
      "--ttl-max",
      "2s",
      "--max-clock-skew",
      "50ms",
    ]);
    await eventually("it is ready", () => peer.stdout().includes("is ready"));
    expect(peer.stdout()).toMatch(
      new RegExp(`^a listens on 127.0.0.1:${port}\na is recovering, ready in .*\na is ready\n$`),
    );
    peer.process.kill("SIGTERM");
    expect((await peer.finished).code).toBe(0);
  });
});
