import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";

/** The modules of the built package that a program loads: of the grounds only those that it opens. */

const root = fileURLToPath(new URL("../..", import.meta.url));

/** The bound on modules for a program that only imports the package. */
const importedMax = 40;
const openedMax = 66;

/** Loader hooks that print each module's address on standard error before the program runs. */
const hooks = `
  import { writeSync } from "node:fs";
  export async function load(url, context, next) {
    if (url.startsWith("file:")) writeSync(2, url + "\\n");
    return next(url, context);
  }`;
const asUrl = (code: string) => `data:text/javascript,${encodeURIComponent(code)}`;
const registration = asUrl(
  `import { register } from "node:module"; register(${JSON.stringify(asUrl(hooks))});`,
);

/** Modules of the package, as paths below `packages/leasehold/dist`, and all others by their full address. */
async function loadedBy(program: string): Promise<string[]> {
  const words = ["--import", registration, "--input-type=module", "--eval", program];
  const { stderr } = await promisify(execFile)(process.execPath, words, { cwd: root });
  return stderr
    .split("\n")
    .filter((line) => line.startsWith("file:"))
    .map((url) => url.replace(/^.*\/packages\/leasehold\/dist\//, ""));
}

const opening = (url: string) =>
  `import { open } from "leasehold"; const leases = await open("${url}"); await leases.close();`;
const foldersOf = (modules: readonly string[]) => new Set(modules.map((path) => path.split("/")[0]));

describe("a program loads", () => {
  test(`fewer than ${importedMax} modules when it imports the package, and none that holds a lease`, async () => {
    const modules = await loadedBy('import "leasehold";');
    expect(modules).toContain("index.js");
    expect(modules.length).toBeLessThan(importedMax);
    expect(modules).not.toContain("lease/manager/lease-manager.js");
  });

  test("no ground except memory, for leases in memory", async () => {
    const modules = await loadedBy(opening("memory:loading"));
    expect(modules).toContain("lease/manager/lease-manager.js");
    // The library's core alone is half of them.
    expect(modules.length).toBeLessThan(openedMax);
    expect(foldersOf(modules)).not.toContain("flease");
    expect(foldersOf(modules)).not.toContain("delta");
  });

  test("no Flease for Δ-leases", async () => {
    const modules = await loadedBy(opening("delta+memory:loading"));
    expect(modules).toContain("delta/provider/provider.js");
    expect(foldersOf(modules)).not.toContain("flease");
  });

  test("no stores for Flease, which is loaded before its address is found invalid", async () => {
    const modules = await loadedBy(
      'import { open } from "leasehold"; await open("flease://").catch(() => undefined);',
    );
    expect(modules).toContain("flease/tcp/client.js");
    expect(foldersOf(modules)).not.toContain("delta");
    expect(foldersOf(modules)).not.toContain("testing");
  });

  test("neither a server of a core nor gRPC with its client, before a core is opened", async () => {
    const modules = await loadedBy('import "leasehold/etcd";');
    expect(modules).toContain("etcd/provider.js");
    expect(modules.filter((path) => /^core\/|node_modules/.test(path))).toEqual([]);
  });
});
