import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { freePorts } from "../../../../../test/free-ports.js";
import { eventually, leasehold } from "../../../../../test/support/built.js";
import { notifySystemd } from "./systemd.js";

/** systemd's side, a datagram socket. Prints each message that it reads as a line of JSON. */
const receiver = `
import json, socket, sys
server = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
server.bind(sys.argv[1])
print("bound", flush=True)
while True:
    print(json.dumps(server.recv(65536).decode()), flush=True)
`;

const directory = mkdtempSync(join(tmpdir(), "leasehold-notify-"));
const ends: (() => void)[] = [() => rmSync(directory, { recursive: true })];
afterAll(() => ends.toReversed().forEach((end) => end()));

async function listen(name: string) {
  const path = join(directory, name);
  const child = spawn("/usr/bin/python3", ["-c", receiver, path], { stdio: ["ignore", "pipe", "inherit"] });
  ends.push(() => child.kill());
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (more: string) => (text += more));
  await eventually("the receiver", () => text.includes("bound"));
  const messages = () =>
    text
      .split("\n")
      .slice(1, -1)
      .map((line) => JSON.parse(line) as string)
      .filter((message) => !message.startsWith("BARRIER"));
  const says = (field: string) =>
    eventually(`${field} in ${text}`, () => messages().some((each) => each.split("\n").includes(field)));
  const env = { ...process.env, NOTIFY_SOCKET: path, WATCHDOG_USEC: "900000" };
  return { messages, says, env };
}

test("a member tells systemd why it is not ready, when it is, that it lives, and that it stops", async () => {
  const { messages, says, env } = await listen("peer");
  const [port] = (await freePorts(1)) as [number];
  const words = ["--id", "a", "--member", `a=127.0.0.1:${port}`, "--ttl-max", "1s"];
  const member = leasehold(["peer", ...words, "--max-clock-skew", "100ms"], { env });
  ends.push(() => member.process.kill("SIGKILL"));
  await says("READY=1");
  const early = messages()[0]!;
  expect(early).toMatch(/^STATUS=not ready: .*recovery: its vote counts in \d s/m);
  const before = messages().slice(
    0,
    messages().findIndex((each) => /^READY=1/m.test(each)),
  );
  expect(before.join("\n")).toMatch(/^EXTEND_TIMEOUT_USEC=900000$/m);
  expect(before.join("\n")).not.toContain("WATCHDOG");
  await says("STATUS=ready");
  const signs = () => messages().filter((each) => each.includes("WATCHDOG=1")).length;
  await eventually("signs of life", () => signs() > 2);
  const signalledMs = performance.now();
  member.process.kill("SIGTERM");
  expect(await member.finished).toMatchObject({ code: 0, stderr: "" });
  expect(performance.now() - signalledMs).toBeLessThan(3_500);
  await says("STOPPING=1");
});

test("the watchdog gets nothing of a server that is not alive; a reload begins and ends", async () => {
  const { messages, says, env } = await listen("reload");
  let isAlive = true;
  let isPassed = false;
  const health = { checks: () => [{ name: "x", isPassed, detail: "late" }], isAlive: () => isAlive };
  const manager = notifySystemd(health, env);
  await says("STATUS=not ready: x: late");
  await eventually("a second message", () => messages().length > 1);
  expect(messages().join("\n")).not.toContain("READY=1");
  isPassed = true;
  await says("WATCHDOG=1");
  isAlive = false;
  await sleep(500);
  const count = messages().filter((each) => each.includes("WATCHDOG=1")).length;
  // The end of the first reload is no longer sent once the second one begins.
  for (const _ of [1, 2]) {
    manager.reloading();
    manager.reloaded();
  }
  const last = () => messages().slice(-3);
  await eventually("the end of the reload", () => last().filter((each) => /RELOAD/.test(each)).length === 2);
  await eventually("the end of the reload", () => messages().at(-1) === "READY=1");
  expect(last()[1]).toMatch(/^MONOTONIC_USEC=\d+$/m);
  await sleep(700);
  expect(messages().filter((each) => each.includes("WATCHDOG=1"))).toHaveLength(count);
  manager.stopping();
  await says("STOPPING=1");
});

test("a message that cannot be sent does not end the server", async () => {
  const { messages, says, env } = await listen("refused");
  let detail = "no argument has a \0";
  const manager = notifySystemd({ checks: () => [{ name: "x", isPassed: detail === "", detail }] }, env);
  detail = "";
  await says("READY=1");
  expect(messages().join("\n")).not.toContain("argument");
  manager.stopping();
});

test("what could not be sent is sent later", async () => {
  const { messages, says, env } = await listen("late");
  const flag = join(directory, "works");
  const folder = join(directory, "bin");
  mkdirSync(folder);
  const script = `#!/bin/sh\n[ -e ${flag} ] && exec /usr/bin/systemd-notify "$@"\nexit 1\n`;
  writeFileSync(join(folder, "systemd-notify"), script, { mode: 0o755 });
  const health = { checks: () => [{ name: "x", isPassed: true, detail: "" }] };
  const manager = notifySystemd(health, { ...env, PATH: `${folder}:${process.env["PATH"]}` });
  await sleep(1_200);
  expect(messages()).toEqual([]);
  writeFileSync(flag, "");
  await says("READY=1");
  await says("STATUS=ready");
  manager.stopping();
});
