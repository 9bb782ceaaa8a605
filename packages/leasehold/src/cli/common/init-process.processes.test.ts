import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";
import { mainPath } from "../../../../../test/support/built.js";

const unshare = ["--pid", "--fork", "--mount-proc", "--kill-child"];

/** Only with these can a command be the first process and leave that role to a shell. */
const isPossible = "execve" in process && spawnSync("unshare", [...unshare, "true"]).status === 0;

/** `leasehold run` as the first process of a container. */
function first(script: string) {
  const run = [mainPath, "run", "--endpoints", "memory:x", "a", "--", "sh", "-c", script];
  const child = spawn("unshare", [...unshare, process.execPath, ...run], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  child.stdout.setEncoding("utf8");
  return child;
}

test.runIf(isPossible)(
  "as the first process of a container it leaves no zombies, and exits as its command",
  async () => {
    const zombies = "cat /proc/[0-9]*/stat | grep -c ') Z '";
    const child = first(`(sleep 0.1 &); (sleep 0.2 &); sleep 1; ${zombies}; exit 7`);
    let printed = "";
    child.stdout.on("data", (text: string) => (printed += text));
    const [code] = (await once(child, "close")) as [number];
    expect([code, printed]).toEqual([7, "0\n"]);
  },
);

test.runIf(isPossible).each([
  ["SIGTERM", 143],
  ["SIGINT", 130],
] as const)("as the first process it passes %s on, more than once", async (signal, status) => {
  // The command's shell counts signals, and ends at the second one.
  const child = first(
    `trap 'n=x$n; [ "$n" = xx ] && exit ${status}' ${signal.slice(3)}; echo ready; while :; do sleep 0.1; done`,
  );
  await once(child.stdout, "data");
  const [, pid] = /^(\d+)/.exec(spawnSync("pgrep", ["-P", String(child.pid)], { encoding: "utf8" }).stdout)!;
  process.kill(Number(pid), signal);
  await new Promise((resolve) => setTimeout(resolve, 500));
  process.kill(Number(pid), signal);
  const [code] = (await once(child, "close")) as [number];
  expect(code).toBe(status);
});
