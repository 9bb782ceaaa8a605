import { afterEach, describe, expect, test, vi } from "vitest";
import { buildProgram } from "../program.js";
import { environmentWithoutSettings } from "../settings/environment.js";
import { securityOf } from "./security-options.js";
import { openOptions, settingsOf } from "./settings.js";

vi.mock("../commands/list.js", () => ({ list: vi.fn(async () => 0) }));
vi.mock("../up/up.js", () => ({ up: vi.fn(async () => 0) }));

afterEach(() => vi.unstubAllEnvs());

/** The security options of a client. */
async function opened(...args: string[]) {
  const { list } = await import("../commands/list.js");
  await (await buildProgram(() => {})).parseAsync(["ls", ...args], { from: "user" });
  return openOptions(settingsOf(vi.mocked(list).mock.lastCall![1]));
}

const files = ["--tls-ca", "ca.pem", "--tls-cert", "me.pem", "--tls-key", "me.key"];
const tls = { ca: "ca.pem", cert: "me.pem", key: "me.key" };

describe("how to prove who we are", () => {
  test("comes from options", async () => {
    expect(await opened(...files, "--role", "observer")).toMatchObject({ tls, role: "observer" });
    expect(await opened("--key-file", "cluster.key")).toMatchObject({ keyFile: "cluster.key" });
    expect(Object.keys(await opened())).toEqual(["timeout"]);
  });

  test("comes from the environment, which the processes of a local cluster do not get", async () => {
    vi.stubEnv("LEASEHOLD_TLS_CA", "ca.pem");
    vi.stubEnv("LEASEHOLD_TLS_CERT", "me.pem");
    vi.stubEnv("LEASEHOLD_TLS_KEY", "me.key");
    vi.stubEnv("LEASEHOLD_ROLE", "client");
    expect(await opened()).toMatchObject({ tls, role: "client" });
    expect(Object.keys(environmentWithoutSettings()).filter((name) => /TLS|ROLE/.test(name))).toEqual([]);
    expect(environmentWithoutSettings()["PATH"]).toBe(process.env["PATH"]);
  });

  test("is refused when it is incomplete or contradictory", () => {
    expect(() => securityOf({ tlsCa: "a", tlsCert: "b" })).toThrow(/needed together/);
    expect(() => securityOf({ tlsCa: "a", tlsCert: "b", tlsKey: "c", keyFile: "d" })).toThrow(
      /cannot be used/,
    );
  });

  test("is refused where it has no meaning", async () => {
    const parsing = (await buildProgram(() => {})).parseAsync(["up", "--key-file", "x"], { from: "user" });
    await expect(parsing).rejects.toThrow(/--key-file has no meaning for up/);
  });
});
