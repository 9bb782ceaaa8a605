import { execFile } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { scenes } from "@leasehold/sim/inner/theatre/scenes.js";
import { type Browser, type Page, chromium } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Running, eventually, leasehold } from "../support/built.js";

/** These tests build the site, serve it with `leasehold docs`, and read it in Debian's Chromium. */

const root = fileURLToPath(new URL("../..", import.meta.url));
const dist = join(root, "packages/docs/pages");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let server: Running;
let browser: Browser;
let url: string;
const failures: string[] = [];
const asked = new Set<string>();

beforeAll(async () => {
  const vitepress = join(root, "site/node_modules/vitepress/bin/vitepress.js");
  await promisify(execFile)(process.execPath, [vitepress, "build", join(root, "site")], {
    maxBuffer: 2 ** 26,
  });
  server = leasehold(["docs", "--address", "127.0.0.1:0"]);
  url = await eventually("an address", () => /http:\/\/[^/]*/.exec(server.stdout())?.[0]);
  browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
});

afterAll(async () => {
  await browser.close();
  server.process.kill("SIGTERM");
  await server.finished;
});

async function show(path: string, more: Parameters<Browser["newPage"]>[0] = {}): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, ...more });
  page.on("pageerror", (error) => failures.push(String(error)));
  page.on("console", (message) => message.type() === "error" && failures.push(message.text()));
  page.on(
    "request",
    (request) => request.url().startsWith("blob:") || asked.add(new URL(request.url()).host),
  );
  await page.goto(url + path, { waitUntil: "networkidle" });
  // The theme's script sets the names of its buttons, which takes longer on a busy machine.
  await page.locator('.VPSwitchAppearance:not([title=""])').first().waitFor({ state: "attached" });
  return page;
}

async function axeFinds(page: Page): Promise<readonly string[]> {
  for (const frame of page.frames()) await frame.evaluate(axe);
  const found = await page.evaluate(async () => {
    const { axe: tool } = globalThis as unknown as {
      axe: { run(what: object): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
    };
    // Excluded: the name of the theme's own button is "Search", while its text also shows its key.
    return (await tool.run({ exclude: [".DocSearch-Button"] })).violations;
  });
  return found.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
}

test("each page of the documentation is a page of the site, in the menu or below an entry of it", () => {
  const pages = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" }).filter((path) =>
    path.endsWith(".md"),
  );
  const built = (path: string) => path.replace(/README\.md$/, "index.md").replace(/\.md$/, ".html");
  expect(pages.length).toBeGreaterThan(80);
  expect(pages.filter((path) => !existsSync(join(dist, "docs", built(path))))).toEqual([]);
});

test("the search finds a page by a word in it, and leads to the page", async () => {
  const page = await show("/");
  expect(await page.locator("h1").textContent()).toContain("Leasehold");
  await page.keyboard.press("Control+k");
  await page.locator(".VPLocalSearchBox input").fill("fencing");
  const first = page.locator(".VPLocalSearchBox .result").first();
  await first.waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL((at) => at.pathname !== "/");
  expect(await page.locator("main").textContent()).toMatch(/fencing/i);
  await page.close();
});

test.each(["light", "dark"] as const)("axe finds nothing in %s", async (colorScheme) => {
  for (const path of ["/", "/docs/quick-start", "/docs/api/leasehold"]) {
    const page = await show(path, { colorScheme });
    expect([path, await axeFinds(page)]).toEqual([path, []]);
    await page.close();
  }
});

test("on a phone no page is wider than the screen, and the menu opens", async () => {
  for (const path of [
    "/",
    "/docs/guarantees",
    "/docs/settings",
    "/docs/performance",
    "/docs/internals/flease",
  ]) {
    const page = await show(path, { viewport: { width: 390, height: 844 } });
    expect([path, await page.evaluate("document.documentElement.scrollWidth")]).toEqual([path, 390]);
    await page.getByRole("button", { name: "Menu" }).first().click();
    await page.getByRole("link", { name: "Quick start" }).first().waitFor();
    await page.close();
  }
});

const pagesOfScenes: Readonly<Record<string, string>> = {
  acquire: "/docs/concepts",
  crash: "/docs/concepts",
  frozen: "/docs/concepts",
  partition: "/docs/guarantees",
  clocks: "/docs/guarantees",
  members: "/docs/operations",
  restart: "/docs/theatre",
  mistake: "/docs/theatre",
};

test("each scene of the theatre plays in a page, in the colours of the site, also on a phone", async () => {
  for (const path of new Set(Object.values(pagesOfScenes))) {
    const page = await show(path, { viewport: { width: 390, height: 844 }, colorScheme: "dark" });
    const here = scenes.filter(({ id }) => pagesOfScenes[id] === path);
    expect(await page.locator(".scene").count()).toBe(here.length);
    for (const { id, title } of here) {
      const figure = page.locator(`.scene[data-scene=${id}]`);
      await figure.getByRole("button").click();
      const scene = figure.frameLocator("iframe");
      await scene.getByRole("heading", { name: title }).waitFor();
      const before = await scene.locator(".says").textContent();
      await scene.getByRole("button", { name: "The next event" }).click();
      expect(await scene.locator(".says").textContent()).not.toBe(before);
      expect(await scene.locator("html").getAttribute("data-theme")).toBe("dark");
      // The frame shows the whole scene without a scroll bar.
      const hidden = await scene.locator("html").evaluate((html) => html.scrollHeight - html.clientHeight);
      expect([id, hidden <= 0]).toEqual([id, true]);
    }
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(390);
    expect(await axeFinds(page)).toEqual([]);
    await page.close();
  }
  expect(scenes.map(({ id }) => id).sort()).toEqual(Object.keys(pagesOfScenes).sort());
}, 600_000);

test("a page runs only the site's scripts", async () => {
  const page = await browser.newPage();
  await page.goto(`${url}/docs/concepts`, { waitUntil: "networkidle" });
  const refused = await page.evaluate(`(async () => {
    // Each comes twice: by the page's own policy and by the header's.
    const refusals = new Set();
    document.addEventListener("securitypolicyviolation", (event) => refusals.add(event.effectiveDirective));
    const script = document.createElement("script");
    script.textContent = "globalThis.ran = true";
    document.body.append(script);
    await fetch("https://example.org/").catch(() => undefined);
    while (refusals.size < 2) await new Promise((resolve) => setTimeout(resolve, 10));
    return [...refusals, "ran" in globalThis];
  })()`);
  expect(refused).toEqual(["script-src-elem", "connect-src", false]);
  await page.close();
});

test("no other site can frame a page, and the playground's code has an opaque origin even when opened directly", async () => {
  const header = async (path: string) => {
    const { headers } = await fetch(url + path);
    return headers.get("content-security-policy");
  };
  expect(await header("/docs/concepts")).toMatch(/script-src 'self' 'sha256-.*; frame-ancestors 'self'$/);
  expect(await header("/theatre/")).toMatch(/script-src 'self';.*; frame-ancestors 'self'$/);
  expect(await header("/playground/frame.html")).toMatch(/ sandbox allow-scripts; frame-ancestors 'self'$/);
  const page = await browser.newPage();
  await page.goto(`${url}/playground/frame.html`);
  expect(await page.evaluate("origin")).toBe("null");
  await page.close();
});

test("two programs contend in the playground, and a frozen one's late write is refused", async () => {
  const page = await show("/docs/playground", { viewport: { width: 390, height: 844 } });
  const program = (name: string) => {
    const pane = page.locator(`.program[data-name=${name}]`);
    const shows = (part: string, text: RegExp) => pane.locator(part, { hasText: text }).waitFor();
    return { pane, shows, press: (text: string) => pane.getByRole("button", { name: text }).click() };
  };
  const [a, b] = [program("A"), program("B")];
  await a.press("Run");
  await a.shows(".state", /^holds the lease, token 1/);
  await a.shows("pre", /wrote report 1 with token 1/);
  await b.press("Run");
  await b.shows(".state", /^waits for the lease/);
  await a.press("Freeze");
  await b.shows("pre", /wrote report 1 with token 2/);
  await a.press("Unfreeze");
  await a.shows("pre", /the store refused report .: token 1 is below 2/);
  await b.press("Stop");
  await b.shows(".state", /^not running/);
  expect(await axeFinds(page)).toEqual([]);
  expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(390);

  // A reader's code may do anything except reach the network and the page.
  const written = `try { (0, eval)("1"); } catch (error) { console.log("eval", error.name); }
try { await fetch("${url}/"); } catch (error) { console.log("fetch", error.name); }
console.log("origin", self.origin);`;
  await b.pane.getByRole("textbox").fill(written);
  await b.press("Run");
  await b.shows("pre", /eval EvalError\s+fetch TypeError\s+origin null\s+done/);
  await b.pane.getByRole("textbox").fill("this is no program");
  await b.press("Run");
  await b.shows("pre", /SyntaxError/);
  await b.pane.getByRole("textbox").fill("for (;;) ;");
  await b.press("Run");
  await b.shows("pre", /stopped: a loop let nothing else run/);
  await page.close();
}, 240_000);

test("code can be copied", async () => {
  const page = await show("/docs/quick-start", { permissions: ["clipboard-read", "clipboard-write"] });
  await page.locator("div[class*=language-] button.copy").first().click({ force: true });
  expect(await page.evaluate<string>("navigator.clipboard.readText()")).toContain("npm install");
  await page.close();
});

test("a missing page is reported as missing", async () => {
  const page = await browser.newPage();
  const answer = await page.goto(`${url}/nowhere`, { waitUntil: "networkidle" });
  expect(answer?.status()).toBe(404);
  expect(await page.locator("body").textContent()).toContain("PAGE NOT FOUND");
  await page.close();
});

test("no page requested anything from another host, and no request failed", () => {
  expect([...asked]).toEqual([new URL(url).host]);
  expect(failures).toEqual([]);
});
