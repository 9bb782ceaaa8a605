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
  startMember,
} from "leasehold";
import { describe, expect, expectTypeOf, test } from "vitest";

/** Each ground has options of its own: in the types, where the address is known, and at run time. */

const tls = { ca: "ca.pem", cert: "own.pem", key: "own.key" };

/** Never called: only the compiler checks this code. */
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
];

/** The arguments that `open` accepts for such addresses. */
type OpenArguments<Url extends string> = Parameters<typeof open<Url>>;

/** The options for an address, as the compiler infers the address from the argument. */
const optionsAt = <Url extends string>(_url: Url): OptionsOf<Url> | undefined => undefined;

describe("the options of an address", () => {
  test("do not compile if they belong to another ground, precede the addresses, or are unknown", () => {
    type Farm = "delta+memory:tests";
    expectTypeOf<[Farm, { role: "observer" }]>().not.toExtend<OpenArguments<Farm>>();
    expectTypeOf<[Farm, { tls: typeof tls }]>().not.toExtend<OpenArguments<Farm>>();
    expectTypeOf<[Farm, { name: string }]>().toExtend<OpenArguments<Farm>>();
    type OnStores = "flease+memory:tests";
    expectTypeOf<[OnStores, { cluster: string }]>().not.toExtend<OpenArguments<OnStores>>();
    type Core = "core://h1:2379";
    expectTypeOf<[Core, { key: string }]>().not.toExtend<OpenArguments<Core>>();
    expectTypeOf<[Core, { tls: typeof tls }]>().toExtend<OpenArguments<Core>>();
    type Memory = "memory:tests";
    expectTypeOf<[Memory, { keyFile: string }]>().not.toExtend<OpenArguments<Memory>>();
    expectTypeOf<[string, { ttlMax: string }]>().not.toExtend<OpenArguments<string>>();
    expectTypeOf<[{ name: string }, Memory]>().not.toExtend<OpenArguments<Memory>>();
    type Cells = Parameters<typeof openGuardedCells>;
    expectTypeOf<[string, { role: "observer" }]>().not.toExtend<Cells>();
    expectTypeOf<[string, { name: string }]>().toExtend<Cells>();
  });

  test("are inferred from the address, even from one that is put together", () => {
    const port: number = 2379;
    expectTypeOf(optionsAt(`core://localhost:${port}`)).toEqualTypeOf<CoreOptions | undefined>();
    expectTypeOf(optionsAt("delta+file:///mnt/a")).toEqualTypeOf<FarmOptions | undefined>();
  });

  test("are those of its ground, or of all grounds if the ground is not known", () => {
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
  ])("are refused by %s at run time if they belong to another ground: %o", async (url, options, name) => {
    await expect(open(url, options)).rejects.toMatchObject({
      code: "INVALID_CONFIG",
      message: expect.stringMatching(new RegExp(`^${name} has no meaning for `)) as string,
    });
  });

  test("may be undefined, and `renewInWorker: false` requests nothing", async () => {
    const options = { role: undefined, renewInWorker: false } as unknown as OpenOptions;
    const leases = await open("delta+memory:options", options);
    expect(leases.guarantees.ground).toBe("delta");
    await leases.close();
  });
});

describe("an invalid argument of open", () => {
  const asGiven = (...args: unknown[]) => open(...(args as [string]));

  test.each<[string, string]>([
    ["memory:options", "lable"],
    ["delta+memory:options", "lable"],
    ["flease+memory:options", "lable"],
    ["core://127.0.0.1:1", "lable"],
    ["flease://127.0.0.1:1", "lable"],
  ])("is refused by %s as a misspelt option", async (url, name) => {
    await expect(asGiven(url, { [name]: "x" })).rejects.toMatchObject({
      code: "INVALID_CONFIG",
      message: 'open has no option "lable"; did you mean label?',
    });
  });

  test("is refused by startMember and clusterStatus, too", async () => {
    const members = { a: "127.0.0.1:1" };
    const wrong = { id: "a", members, ttlmax: "5s" };
    await expect(startMember(wrong)).rejects.toThrow(
      'startMember has no option "ttlmax"; did you mean ttlMax?',
    );
    const status = clusterStatus("flease://127.0.0.1:1", { roles: "observer" } as object);
    await expect(status).rejects.toThrow("clusterStatus has no option");
  });

  test("is refused by memory: if the option has no meaning there, as by every ground", () =>
    expect(asGiven("memory:options", { role: "observer" })).rejects.toMatchObject({
      code: "INVALID_CONFIG",
    }));

  test.each([
    ["redis://h1:6379/0", "delta+redis://h1:6379/0"],
    ["postgres://user:secret@h1/db", "delta+postgres://…@h1/db"],
    ["file:///mnt/a", "delta+file:///mnt/a"],
    ["/mnt/a", "delta+file:///mnt/a"],
    ["http://h1:2379", "core://h1:2379 for a core or an etcd"],
    ["tcp://h1:7400", "flease://h1:7400"],
  ])("%s is answered with the likely address, without a password", (url, meant) =>
    expect(asGiven(url)).rejects.toMatchObject({
      code: "INVALID_URL",
      message: expect.stringMatching(
        new RegExp(`^(?!.*secret).* did you mean ${meant.replace(/[+.]/g, "\\$&")}\\?$`),
      ) as string,
    }),
  );

  test("a list of addresses is answered with the right form", () =>
    expect(asGiven(["memory:options"])).rejects.toMatchObject({
      code: "INVALID_URL",
      message: "each address is an argument of its own: write open(...addresses)",
    }));

  test.each([
    [[{ name: "a" }, "memory:options"]],
    [["memory:options", 5]],
    [["memory:options", null]],
    [["memory:a", {}, {}]],
  ])("%j is refused", (args) => expect(asGiven(...args)).rejects.toMatchObject({ code: "INVALID_CONFIG" }));
});
