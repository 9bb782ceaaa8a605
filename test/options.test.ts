import {
  clusterStatus,
  type CoreOptions,
  type FarmOptions,
  type FleaseOptions,
  type MemoryOptions,
  open,
  openGuardedCells,
  type OpenOptions,
  type OptionsOf,
} from "leasehold";
import { describe, expect, expectTypeOf, test } from "vitest";

/** Each ground has options of its own: in the types where the address is known, and when it runs. */

const tls = { ca: "ca.pem", cert: "own.pem", key: "own.key" };

/** Never called: the compiler judges what stands here. */
export const judged = [
  () => open("flease://h1:7400", "flease://h2:7400", { role: "observer", renewInWorker: true, tls }),
  () => open("delta+file:///mnt/a,/mnt/b", { name: "importer", label: "nightly", timeout: "2s" }),
  () => open("core://h1:2379", { tls, timeout: 500 }),
  () => open("memory:tests", { name: "one" }),
  () => open("memory:tests"),
  (port: number) => open(`core://localhost:${port}`, { tls }),
  (url: string, urls: string[]) => open(url, ...urls.slice(0, 3), { role: "client", tls }),
  (urls: string[]) => open(...urls.slice(0, 3)),
  () => clusterStatus("flease://h1:7400", { role: "observer" }),
  () => openGuardedCells("delta+memory:cells", { name: "one" }),
  // @ts-expect-error a farm has no members, and so no roles
  () => open("delta+memory:tests", { role: "observer" }),
  // @ts-expect-error nor has one that runs Flease
  () => open("flease+memory:tests", { cluster: "reports" }),
  // @ts-expect-error stores are reached with their own credentials
  () => open("delta+redis://h1", { tls }),
  // @ts-expect-error a core proves itself by certificates
  () => open("core://h1:2379", { key: "00" }),
  // @ts-expect-error which template addresses do not hide
  (port: number) => open(`core://localhost:${port}`, { renewInWorker: true }),
  // @ts-expect-error nobody has to be convinced in memory
  () => open("memory:tests", { keyFile: "key" }),
  // @ts-expect-error no ground knows it
  (url: string) => open(url, { ttlMax: "15s" }),
  // @ts-expect-error options come last
  () => open({ name: "one" }, "memory:tests"),
  // @ts-expect-error cells stand on stores
  () => openGuardedCells("delta+memory:cells", { role: "observer" }),
];

describe("the options of an address", () => {
  test("are those of its ground, and of all grounds where the ground is not known", () => {
    expectTypeOf<OptionsOf<"flease://h:7400">>().toEqualTypeOf<FleaseOptions>();
    expectTypeOf<OptionsOf<`delta+${string}`>>().toEqualTypeOf<FarmOptions>();
    expectTypeOf<OptionsOf<"flease+s3://h/b">>().toEqualTypeOf<FarmOptions>();
    expectTypeOf<OptionsOf<"core://h">>().toEqualTypeOf<CoreOptions>();
    expectTypeOf<OptionsOf<"memory:a">>().toEqualTypeOf<MemoryOptions>();
    expectTypeOf<OptionsOf<string>>().toEqualTypeOf<OpenOptions>();
    expectTypeOf<OptionsOf<"core://h" | "memory:a">>().toEqualTypeOf<OpenOptions>();
  });

  test.each<[string, OpenOptions, string]>([
    ["delta+memory:options", { role: "observer" }, "role"],
    ["delta+memory:options", { tls }, "tls"],
    ["flease+memory:options", { cluster: "reports" }, "cluster"],
    ["flease+memory:options", { renewInWorker: true }, "renewInWorker"],
    ["core://127.0.0.1:1", { key: "00" }, "key"],
    ["core://127.0.0.1:1", { keyFile: "key" }, "keyFile"],
  ])("are refused by %s when it runs, if they are another's: %o", async (url, options, name) => {
    await expect(open(url, options)).rejects.toMatchObject({
      code: "INVALID_CONFIG",
      message: expect.stringMatching(new RegExp(`^${name} has no meaning for `)) as string,
    });
  });

  test("may be there without a value, and `renewInWorker: false` asks for nothing", async () => {
    const options = { role: undefined, renewInWorker: false } as unknown as OpenOptions;
    const leases = await open("delta+memory:options", options);
    expect(leases.guarantees.ground).toBe("delta");
    await leases.close();
  });
});
