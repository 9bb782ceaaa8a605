import { execFile } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startMember } from "leasehold";
import { freePorts } from "../../../../../test/free-ports.js";
import { eventually, leasehold, mainPath, type Running } from "../../../../../test/support/built.js";
import { type LocalCluster, startLocalCluster } from "../../../../../test/support/local-cluster.js";

/** The commands about leases, as separate processes, with members on real sockets. */

/** All tests share this cluster and some list its leases, so each test has its own names. */
let cluster: LocalCluster;
const running: Running[] = [];

beforeAll(async () => {
  cluster = await startLocalCluster();
});

afterAll(async () => {
  for (const { process: child } of running) child.kill("SIGKILL");
  await cluster.close();
});

function start(...words: string[]): Running {
  const command = leasehold([words[0]!, "--endpoints", cluster.urls.join(","), ...words.slice(1)]);
  running.push(command);
  return command;
}

const says = (command: Running, text: string) =>
  eventually(`${text} in ${command.stdout()}${command.stderr()}`, () => command.stdout().includes(text));

test("a hold that watch, get and ls show is asked to release", async () => {
  const watch = start("watch", "demo/", "-o", "ndjson");
  const exact = start("watch", "--exact", "demo/", "-o", "ndjson");
  const hold = start("hold", "demo/a", "--label", "by hand");
  await says(hold, "held, token");
  await says(watch, '"state":"held"');
  const got = await start("get", "demo/a").finished;
  expect(got.code).toBe(0);
  expect(got.stdout).toMatch(/^label +.* pid \d+: by hand$/m);
  expect(got.stdout).toContain("held by");
  expect(got.stdout).toMatch(/^m2 .*ready/m);
  expect((await start("ls", "--names", "demo/").finished).stdout).toBe("demo/a\n");
  const asked = await start("release", "demo/a").finished;
  expect(asked).toMatchObject({ code: 0, stderr: "" });
  expect(asked.stdout).toContain("was asked to release demo/a");
  const held = await hold.finished;
  expect(held.code).toBe(0);
  expect(held.stdout).toMatch(/released: .* asks for "demo\/a"/);
  await says(watch, '"state":"free"');
  watch.process.kill("SIGINT");
  const watched = await watch.finished;
  expect(watched.code).toBe(0);
  const changes = watched.stdout.trim().split("\n");
  exact.process.kill("SIGINT");
  expect((await exact.finished).stdout).toBe("");
  expect(changes.map((line) => (JSON.parse(line) as { state: string }).state)).toEqual(["held", "free"]);
  expect((await start("release", "demo/a").finished).stdout).toBe("nobody holds demo/a\n");
});

test("run -n admits n holders, each with a slot, and one more with a greater n", async () => {
  const slot = (words: string[]) =>
    start("run", "gpu", ...words, "--", "sh", "-c", "echo $LEASE_SLOT; exec sleep 30");
  const first = [slot(["-n", "2"]), slot(["-n", "2"])];
  await Promise.all(first.map((each) => says(each, "\n")));
  const slots = first.map(({ stdout }) => stdout().trim());
  expect(slots.toSorted()).toEqual(["0", "1"]);
  const refused = await start("run", "gpu", "-n", "2", "--try", "--", "true").finished;
  expect(refused).toMatchObject({ code: 75, stdout: "", stderr: 'leasehold: others hold "gpu"\n' });
  const third = slot(["-n", "3"]);
  await says(third, "2\n");
  const { stdout } = await start("ls", "gpu", "--names").finished;
  expect(stdout).toBe("gpu\ngpu/~1\ngpu/~2\n");
  expect((await start("get", "gpu").finished).stdout).toMatch(/^slot 1 .*\nslot 2 .* token \d+, /m);
  for (const { process: child } of [...first, third]) child.kill("SIGTERM");
  await Promise.all([...first, third].map(({ finished }) => finished));
});

test("runs with --shared overlap, and a run without it is alone, after them", async () => {
  const token = ["--", "sh", "-c", "echo $LEASE_TOKEN; exec sleep 30"];
  const readers = [
    start("run", "book/~rw", "--shared", ...token),
    start("run", "book/~rw", "--shared", ...token),
  ];
  await Promise.all(readers.map((each) => says(each, "\n")));
  for (const words of [[], ["--exclusive"]]) {
    const beside = await start("run", "book/~rw", ...words, "--try", "--", "true").finished;
    expect({ words, code: beside.code }).toEqual({ words, code: 75 });
  }
  const writer = start("run", "book/~rw", ...token);
  for (const { process: child } of readers) child.kill("SIGTERM");
  await says(writer, "\n");
  for (const each of readers) expect(BigInt(writer.stdout())).toBeGreaterThan(BigInt(each.stdout()));
  expect(await start("run", "book/~rw", "--shared", "--try", "--", "true").finished).toMatchObject({
    code: 75,
  });
  writer.process.kill("SIGTERM");
  await writer.finished;
});

test.each(["--shared", "--exclusive"])(
  "run %s of a name without readers is refused (2), so that no run x is beside a reader of x",
  async (mode) => {
    const { code, stdout, stderr } = await start("run", "page", mode, "--", "echo", "ran").finished;
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain('"page/~rw"');
  },
);

test("run --fair waits in order", async () => {
  const holder = start("hold", "ramp");
  await says(holder, "held, token");
  const waits = (word: string) => start("run", "ramp", "--fair", "--", "echo", word);
  const [first, second] = [waits("first"), waits("second")];
  holder.process.kill("SIGINT");
  expect(await first.finished).toMatchObject({ code: 0, stdout: "first\n" });
  expect(await second.finished).toMatchObject({ code: 0, stdout: "second\n" });
});

test("-n, --shared, --exclusive and a handle do not go together (2)", async () => {
  for (const words of [
    ["-n", "2", "--shared"],
    ["--shared", "--exclusive"],
    ["--shared", "--detach"],
    ["-n", "65"],
    ["--fair", "--try"],
  ]) {
    const { code, stdout } = await start("hold", "forms", ...words).finished;
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  }
});

test("--data of hold and elect is public, and ends with the tenure", async () => {
  const data = { port: 8080, zones: ["eu", null] };
  const hold = start("hold", "data/hold", "--data", JSON.stringify(data));
  const elect = start("elect", "data/elect", "--data", '"é"', "--", "sleep", "30");
  await says(hold, "held, token");
  const readData = async (name: string) => {
    const { stdout } = await start("get", name, "-o", "json").finished;
    return (JSON.parse(stdout) as { data?: unknown }).data;
  };
  while ((await readData("data/hold")) === undefined || (await readData("data/elect")) === undefined);
  expect(await readData("data/hold")).toEqual(data);
  expect((await start("get", "data/elect").finished).stdout).toMatch(/^data +"é"$/m);
  const listed = JSON.parse((await start("ls", "data/", "-o", "json").finished).stdout) as object[];
  expect(listed).toMatchObject([
    { resource: "data/elect", data: "é" },
    { resource: "data/hold", data },
  ]);
  for (const { process: child } of [hold, elect]) child.kill("SIGTERM");
  await Promise.all([hold.finished, elect.finished]);
  const plain = start("hold", "data/hold");
  await says(plain, "held, token");
  expect(await readData("data/hold")).toBeUndefined();
  plain.process.kill("SIGTERM");
});

test.each(["hold", "elect"])(
  "%s refuses --data that is not JSON, or too long, before it connects",
  async (command) => {
    const nowhere = ["--endpoints", "flease://127.0.0.1:1"];
    const told = (data: string) => leasehold([command, ...nowhere, "a", "--data", data]).finished;
    const noJson = await told("{port:1}");
    expect(noJson).toMatchObject({ code: 2, stdout: "" });
    expect(noJson.stderr).toContain('--data is no JSON: "{port:1}"');
    const tooLong = await told(JSON.stringify("é".repeat(512)));
    expect(tooLong).toMatchObject({ code: 2, stdout: "" });
    expect(tooLong.stderr).toContain("data: 1026 bytes of JSON where 1024 are allowed");
  },
);

test.each([
  [["ls", "--json", "--endpoints", "127.0.0.1:9", "--timeout", "200ms"], "UNREACHABLE", 69],
  [["ls", "-o", "ndjson", "--nonsense"], "USAGE", 2],
  [["run", "--json", "--endpoints", "memory:x", "x", "--", "/nowhere"], "COMMAND_NOT_FOUND", 127],
])("%j ends with an error for programs: %s", async (words, code, exitCode) => {
  const ended = await leasehold(words).finished;
  expect(ended).toMatchObject({ code: exitCode, stdout: "" });
  expect(JSON.parse(ended.stderr)).toEqual({ type: "error", code, exitCode, message: expect.any(String) });
  expect(ended.stderr).toMatch(/^.*\n$/);
});

test("members refuse to detach for another and to attach with 2, before anything is taken", async () => {
  for (const words of [
    ["hold", "detached", "--detach"],
    ["hold", "--attach", "h"],
    ["run", "--attach", "h", "--", "true"],
  ]) {
    const stderr = "leasehold: on this ground a detached lease cannot be attached\n";
    expect(await start(...words).finished).toMatchObject({ code: 2, stdout: "", stderr });
  }
  expect((await start("run", "--try", "detached", "--", "true").finished).code).toBe(0);
});

test("a broken lease is lost at its end, with the reason", async () => {
  const hold = start("hold", "broken");
  await says(hold, "held, token");
  const broken = await start("break", "broken", "-o", "json").finished;
  expect(JSON.parse(broken.stdout)).toMatchObject({ resource: "broken", done: true });
  // The holder obeys the request; otherwise it would lose the lease.
  expect((await hold.finished).stdout).toContain("has broken the lease");
  const run = start("run", "broken", "--", "sleep", "30");
  const state = async () => {
    const { stdout } = await start("get", "broken", "-o", "json").finished;
    return (JSON.parse(stdout) as { state: string }).state;
  };
  while ((await state()) !== "held");
  expect((await start("break", "broken").finished).stdout).toContain("is broken: it runs out in");
  const ended = await run.finished;
  expect(ended.code).toBe(76);
  expect(ended.stderr).toContain("has broken the lease");
});

test("elect passes leadership on", async () => {
  const first = start("elect", "leader");
  await says(first, "leading, token");
  const second = start("elect", "leader", "-o", "ndjson");
  first.process.kill("SIGTERM");
  await says(second, '"type":"leading"');
  const result = await first.finished;
  expect(result.code).toBe(0);
  expect(result.stdout).toContain("no longer leading: interrupted");
  second.process.kill("SIGKILL");
  const third = start("elect", "leader", "--", "sh", "-c", "echo $LEASE_NAME; exit 9");
  expect(await third.finished).toMatchObject({ code: 9, stdout: "leader\n" });
});

test("bash completes commands, options and names, and the scripts of other shells are printed", async () => {
  const hold = start("hold", "names/one");
  await says(hold, "held, token");
  const folder = mkdtempSync(join(tmpdir(), "leasehold-completion-"));
  try {
    symlinkSync(mainPath, join(folder, "leasehold"));
    const script = join(folder, "completion.bash");
    writeFileSync(script, (await start("completion", "bash").finished).stdout);
    const complete = async (...words: string[]) => {
      const { stdout } = await promisify(execFile)(
        "bash",
        [
          "-c",
          `source ${script}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _leasehold; echo "\${COMPREPLY[@]}"`,
          "x",
          ...words,
        ],
        {
          env: {
            ...process.env,
            PATH: `${folder}${delimiter}${process.env["PATH"]}`,
            LEASEHOLD_ENDPOINTS: cluster.urls.join(","),
          },
        },
      );
      return stdout.trim();
    };
    expect(await complete("leasehold", "wat")).toBe("watch");
    expect(await complete("leasehold", "hold", "--tr")).toBe("--try");
    expect(await complete("leasehold", "ls", "-o", "nd")).toBe("ndjson");
    expect(await complete("leasehold", "completion", "f")).toBe("fish");
    expect(await complete("leasehold", "get", "names/")).toBe("names/one");
    expect(await complete("leasehold", "run", "x", "--", "names/")).toBe("");
  } finally {
    rmSync(folder, { recursive: true });
  }
  expect((await start("completion", "zsh").finished).stdout).toContain("#compdef leasehold");
  expect((await start("completion", "fish").finished).stdout).toContain("-a watch -d");
  expect((await start("completion", "tcsh").finished).code).toBe(2);
});

test("--wait includes the wait for members that start after the command, and long after --timeout", async () => {
  const [port] = await freePorts(1);
  const words = ["--endpoints", `127.0.0.1:${port}`, "--timeout", "100ms"];
  const patient = leasehold(["run", "late", "--wait", "30s", ...words, "--", "true"]);
  running.push(patient);
  const hasty = await leasehold(["run", "late", ...words, "--", "true"]).finished;
  expect(hasty.code).toBe(69);
  const settings = { ttlMax: "3s", maxClockSkew: "10ms", rpcTimeout: "150ms" };
  const member = await startMember({ id: "a", members: { a: `127.0.0.1:${port}` }, ...settings });
  expect(await patient.finished).toMatchObject({ code: 0, stderr: "" });
  await member.close();
});

test.each([
  [["run", "x", "y", "--", "true"], '"y" stands before "--"'],
  [["elect", "x", "y", "--", "true"], '"y" stands before "--"'],
  [["run", "x", "true"], 'put "--" before the command: run NAME -- COMMAND'],
  [["run", "x", "--"], "the command is missing: run NAME -- COMMAND"],
  [
    ["run", "--attach", "h", "x", "--", "true"],
    '"x" stands before "--"; the command comes after it: run --attach',
  ],
  [["hold"], "give the name of a resource, or --attach HANDLE"],
  [["hold", "x", "--attach", "h"], '--attach takes no name, as the handle has it: "x"'],
  [["hold", "--attach", "h", "--endpoints", "memory:x"], "not a handle that `detach` returned"],
  [
    ["run", "x", "--ttl", "5000", "--", "true"],
    '--ttl: "5000" is not a duration; it has no unit; write "5000ms"',
  ],
  [["run", "x", "--wait", "99999999999999999999s", "--", "true"], "the longest is 9007199254740991ms"],
  [["peer", "--role", "observer"], "--role has no meaning for peer"],
  [["core", "--role", "observer"], "--role has no meaning for core"],
  [["status", "--endpoints", "memory:x"], "memory: is in one process alone"],
  [["doctor", "--endpoints", "memory:x"], "memory: is in one process alone"],
])("%j is refused with 2", async (words, message) => {
  const { code, stdout, stderr } = await leasehold(words).finished;
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toContain(message);
});

test.skipIf(process.platform !== "linux")("output to a full disk fails with its exit code", async () => {
  const full = openSync("/dev/full", "w");
  for (const words of [["--version"], ["ls", "--endpoints", "memory:"], ["completion", "bash"]]) {
    const { code, stderr } = await leasehold(words, { stdio: ["ignore", full, "pipe"] }).finished;
    expect({ words, code, stderr }).toEqual({
      words,
      code: 1,
      stderr: "leasehold: the output could not be written (ENOSPC)\n",
    });
  }
  closeSync(full);
});
