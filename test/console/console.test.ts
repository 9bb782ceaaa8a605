import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { setTimeout as sleep } from "node:timers/promises";
import type { Leases } from "leasehold";
import { type Browser, type Page, chromium } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RunningConsole } from "@leasehold/console";

/** The page in a real Chromium, from Debian. */

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const name = "memory:console";

/** Tests the built page, since Node cannot import its sources. */
const built = async () => {
  const packages = new URL("../../packages/", import.meta.url).href;
  const of = (path: string) => `${packages}${path}`;
  const [{ open }, { settingsOf }, { startConsole }] = await Promise.all([
    import(of("leasehold/dist/index.js")) as Promise<typeof import("leasehold")>,
    import(of("leasehold/dist/shared/cli.js")) as Promise<typeof import("leasehold/cli")>,
    import(of("console/dist/index.js")) as Promise<typeof import("@leasehold/console")>,
  ]);
  return { open, settingsOf, startConsole };
};

let code: Awaited<ReturnType<typeof built>>;
let browser: Browser;
let leases: Leases;
let holder: Leases;
let served: RunningConsole;

beforeAll(async () => {
  code = await built();
  browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
  leases = await code.open(name);
  holder = await code.open(name, { name: "worker" });
  served = await serve();
}, 120_000);

afterAll(async () => {
  await browser.close();
  await served.close();
  await Promise.all([leases.close(), holder.close()]);
});

function serve(address = "127.0.0.1:0"): Promise<RunningConsole> {
  return code.startConsole(leases, code.settingsOf({ endpoints: [name] }), { address, allowChanges: true });
}

async function show(hash: string, more: Parameters<Browser["newPage"]>[0] = {}): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 720 }, ...more });
  page.on("pageerror", (error) => failures.push(String(error)));
  page.on("console", (message) => message.type() === "error" && failures.push(message.text()));
  await page.goto(`${served.url}${hash}`);
  await page.getByText("live", { exact: true }).waitFor();
  return page;
}

/** Scrolls for 180 frames, and returns the time of each. */
const scrolling = `new Promise((resolve) => {
  const gaps = [];
  let last = performance.now();
  const frame = (nowMs) => {
    gaps.push(nowMs - last);
    last = nowMs;
    document.querySelector(".rows").scrollTop += 120;
    if (gaps.length < 180) requestAnimationFrame(frame);
    else resolve(gaps.slice(1));
  };
  requestAnimationFrame(frame);
})`;

const failures: string[] = [];
const rowOf = (page: Page, text: string) => page.locator(".rows .row", { hasText: text });

describe("the console's page", () => {
  test("has less than 100 kB of compressed script, and requests nothing from elsewhere", async () => {
    const script = readFileSync("packages/console/dist/page/page.js");
    expect(gzipSync(script).length).toBeLessThan(100_000);
    const page = await browser.newPage();
    const asked: string[] = [];
    page.on("request", (request) => asked.push(new URL(request.url()).origin));
    await page.goto(served.url);
    await page.getByText("live", { exact: true }).waitFor();
    expect(new Set(asked)).toEqual(new Set([new URL(served.url).origin]));
    await page.close();
  });

  test("shows who holds a lease and since when, its history, and that it is free again", async () => {
    const first = await holder.acquire("demo/backup", { ttl: "10s" });
    await first.release();
    const lease = await holder.acquire("demo/backup", { ttl: "10s", data: { job: "<b>nightly</b>" } });
    const page = await show("#/leases");
    const row = rowOf(page, "demo/backup");
    await row.waitFor();
    expect(await row.locator(".token").textContent()).toBe(String(lease.token));
    await row.click();
    const details = page.locator(".details");
    await details.getByText("holds it now").waitFor();
    // Holders' data is shown as text, whatever it looks like.
    expect(await details.locator("pre").textContent()).toContain("<b>nightly</b>");
    expect(await details.locator("pre b").count()).toBe(0);
    expect(page.url()).toContain("name=demo%2Fbackup");
    await lease.release();
    await details.getByText("Free", { exact: true }).waitFor();
    await details.getByText("released by its holder").first().waitFor();
    await page.keyboard.press("Escape");
    await details.waitFor({ state: "detached" });
    await page.close();
  });

  test("asks a holder to release after it has explained the effect", async () => {
    await using lease = await holder.acquire("demo/asked", { ttl: "10s" });
    const page = await show("#/leases?name=demo%2Fasked");
    await page.getByRole("button", { name: "Ask to release …" }).click();
    await page.getByText("may ignore the request").waitFor();
    expect(lease.releaseRequested.aborted).toBe(false);
    await page.getByRole("dialog").getByRole("button", { name: "Ask to release" }).click();
    await expect.poll(() => lease.releaseRequested.aborted).toBe(true);
    await page.getByText("The holder was told.").waitFor();
    await page.close();
  });

  test("can be used with keys alone", async () => {
    await using _a = await holder.acquire("keys/a", { ttl: "10s" });
    await using _b = await holder.acquire("keys/b", { ttl: "10s" });
    const page = await show("#/leases");
    await page.keyboard.press("/");
    await page.keyboard.type("keys/");
    await expect.poll(() => page.locator(".rows .row").count()).toBe(2);
    while (!(await page.evaluate("document.activeElement.classList.contains('rows')")))
      await page.keyboard.press("Tab");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.locator(".details h2", { hasText: "keys/b" }).waitFor();
    await page.close();
  });

  test.each(["light", "dark"] as const)(
    "has no findings by axe, %s, also on a phone",
    async (colorScheme) => {
      await using _lease = await holder.acquire("demo/axe", { ttl: "10s", data: { job: 1 } });
      for (const viewport of [
        { width: 1280, height: 720 },
        { width: 390, height: 800 },
      ])
        for (const hash of ["#/leases", "#/leases?name=demo%2Faxe", "#/ground", "#/events"]) {
          const page = await show(hash, { colorScheme, viewport, bypassCSP: true });
          if (hash.includes("name=")) await page.getByText("holds it now").waitFor();
          await page.addScriptTag({ content: axe });
          const found = await page.evaluate(
            "axe.run().then((result) => result.violations.map((each) => each.id + ': ' + each.nodes.map((node) => node.target).join()))",
          );
          expect([hash, viewport.width, found]).toEqual([hash, viewport.width, []]);
          const isWider = await page.evaluate("document.documentElement.scrollWidth > innerWidth");
          expect(isWider).toBe(false);
          await page.close();
        }
    },
  );

  test("reports that it is out of date, and is right again after its server returns", async () => {
    const page = await show("#/leases");
    const { port } = new URL(served.url);
    await served.close();
    await page.getByText("this is how it was then").waitFor();
    await using _lease = await holder.acquire("demo/after", { ttl: "30s" });
    served = await serve(`127.0.0.1:${port}`);
    await rowOf(page, "demo/after").waitFor();
    await expect.poll(() => page.locator(".notice").count()).toBe(0);
    await page.close();
    // Ignore the console errors of the lost connection.
    failures.splice(0, failures.length, ...failures.filter((text) => !text.includes("ERR_")));
  });

  test("keeps up with 10,000 leases and 1,000 changes a second", async () => {
    const count = 10_000;
    for (let at = 0; at < count; at += 500)
      await Promise.all(
        Array.from({ length: 500 }, (_, n) =>
          holder.acquire(`many/${String(at + n).padStart(5, "0")}`, { ttl: "5m", autoRenew: false }),
        ),
      );
    const page = await show("#/leases?prefix=many/");
    await expect
      .poll(() => page.locator(".table").getAttribute("aria-rowcount"), { timeout: 20_000 })
      .toBe(String(count + 1));
    // Only the visible rows exist.
    expect(await page.locator(".rows .row").count()).toBeLessThan(60);
    const stop = new AbortController();
    const churn = (async () => {
      while (!stop.signal.aborted) {
        await Promise.all(
          Array.from({ length: 50 }, async (_, n) => {
            const lease = await holder.tryAcquire(`many/new-${n}`, { ttl: "5m" });
            await lease?.release();
          }),
        );
        await sleep(100);
      }
    })();
    const frames = (await page.evaluate(scrolling)) as number[];
    stop.abort();
    await churn;
    const sorted = [...frames].sort((a, b) => a - b);
    const at = (share: number) => Math.round(sorted[Math.floor(share * sorted.length)]!);
    process.stdout.write(`frames: median ${at(0.5)} ms, 95 % ${at(0.95)} ms, longest ${at(0.999)} ms\n`);
    expect(at(0.5)).toBeLessThan(50);
    await page.close();
  }, 120_000);

  test("has printed no error", () => {
    expect(failures).toEqual([]);
  });
});
