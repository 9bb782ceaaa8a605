import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { startGateway } from "@leasehold/gateway";
import { open } from "leasehold";
import { afterAll, beforeAll, expect, it } from "vitest";

/** The clients in other languages, each with its own tests, at a gateway in this process. */

const run = promisify(execFile);
const clients = fileURLToPath(new URL("../../clients", import.meta.url));
const leases = await open("memory:clients");
const gateway = await startGateway(leases, { address: "127.0.0.1:0" });
const env = { ...process.env, LEASEHOLD_GATEWAY: gateway.url };

beforeAll(async () => {
  await run("sh", [
    "-c",
    "command -v go python3 || apt-get install -y --no-install-recommends golang-go python3",
  ]);
});

afterAll(async () => {
  await gateway.close();
  await leases.close();
});

it("Python's client passes its tests", async () => {
  const words = ["-W", "error", "-m", "unittest", "discover", "-s", "tests"];
  const { stderr } = await run("python3", words, { cwd: `${clients}/python`, env });
  expect(stderr).toMatch(/Ran (?:9|\d\d+) tests in .*\n\nOK/);
});

it("Go's client is formatted, is sound, and passes its tests", async () => {
  const at = { cwd: `${clients}/go`, env };
  expect((await run("gofmt", ["-l", "."], at)).stdout).toBe("");
  await run("go", ["vet", "./..."], at);
  const { stdout } = await run("go", ["test", "-count=1", "-v", "./..."], at);
  expect(stdout.match(/--- PASS/g)?.length).toBeGreaterThanOrEqual(9);
});

it("a client whose sessions end releases everything", async () => {
  expect(gateway.status()).toMatchObject({ leases: 0, sessions: 0 });
  expect(await leases.list("")).toEqual([]);
});
