import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { open } from "leasehold";
import { mainPath } from "../../../../test/support/built.js";

const patience = { timeout: 20_000 };

/** The command at a terminal of `script` (util-linux), which the test redraws line by line. */
class Terminal {
  readonly ended: Promise<number | null>;
  readonly #child;
  readonly #rows = new Map<number, string>();
  #text = "";

  constructor(endpoint: string, columns: number, rows: number) {
    const words = [process.execPath, mainPath, "top", "--endpoints", endpoint];
    const command = `stty cols ${columns} rows ${rows}; exec ${words.map((word) => `'${word}'`).join(" ")}`;
    this.#child = spawn("script", ["-qefc", command, "/dev/null"], {
      env: { ...process.env, NO_COLOR: "1", TERM: "xterm" },
    });
    this.#child.stdout.setEncoding("utf8").on("data", (data: string) => this.#take(data));
    this.ended = new Promise((resolve) => {
      this.#child.on("close", resolve);
    });
  }

  get text(): string {
    return this.#text;
  }

  /** The screen's content. */
  get screen(): string {
    return [...this.#rows]
      .sort(([one], [other]) => one - other)
      .map(([, line]) => line)
      .join("\n");
  }

  press(keys: string): void {
    this.#child.stdin.write(keys);
  }

  #take(data: string): void {
    this.#text += data;
    // Matches "ESC [ row ; 1 H", the line, and "ESC [ K".
    for (const [, row = "", line = ""] of data.replaceAll("\u001b", "\n").matchAll(/^\[(\d+);1H(.*)\n\[K/gm))
      this.#rows.set(Number(row), line);
  }
}

test("top shows a lease, its details and its release, takes a filter, and leaves the terminal as it was", async () => {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-top-"));
  const endpoint = `delta+file://${folder}?maxStoreLatency=200ms`;
  const leases = await open(endpoint, { name: "holder" });
  const lease = await leases.acquire("jobs/nightly", { data: { step: 7 } });
  await leases.acquire("other");
  const top = new Terminal(endpoint, 80, 24);
  try {
    await expect.poll(() => top.screen, patience).toMatch(/jobs\/nightly +holder\./);
    expect(top.screen).toContain("2 leases");
    top.press("/NIGHT");
    await expect.poll(() => top.screen, patience).toContain("no lease matches the filter");
    top.press("\u001b");
    await expect.poll(() => top.screen, patience).toMatch(/other +holder\./);
    top.press("/nightly\r\u001b[B\r");
    await expect.poll(() => top.screen, patience).toMatch(/data +\{"step":7\}/);
    await lease.release();
    await expect.poll(() => top.screen, patience).toMatch(/^free/m);
    top.press("\r4");
    await expect.poll(() => top.screen, patience).toContain("jobs/nightly: holder.");
    top.press("q");
    expect(await top.ended).toBe(0);
    expect(top.text.endsWith("\u001b[?25h\u001b[?1049l")).toBe(true);
  } finally {
    top.press("\u0003");
    await leases.close();
    rmSync(folder, { recursive: true });
  }
});
