import { execFile } from "node:child_process";
import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { type Server, createServer } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type Browser, type Page, chromium } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";

/** These tests build the site, serve it as any host of files does, and read it in Debian's Chromium. */

const root = fileURLToPath(new URL("../..", import.meta.url));
const dist = join(root, "site/dist");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const types: Readonly<Record<string, string>> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
  ".json": "application/json",
};

let server: Server;
let browser: Browser;
let url: string;
const failures: string[] = [];
const asked = new Set<string>();

beforeAll(async () => {
  const vitepress = join(root, "site/node_modules/vitepress/bin/vitepress.js");
  await promisify(execFile)(process.execPath, [vitepress, "build", join(root, "site")], {
    maxBuffer: 2 ** 26,
  });
  server = createServer(({ url: target = "/" }, response) => {
    const path = join(dist, decodeURIComponent(new URL(target, "http://site").pathname));
    const file = [path, `${path}.html`, join(path, "index.html")].find(
      (each) => existsSync(each) && statSync(each).isFile(),
    );
    response.writeHead(file === undefined ? 404 : 200, { "content-type": types[extname(file ?? "")] ?? "" });
    response.end(file === undefined ? "" : readFileSync(file));
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
});

afterAll(async () => {
  await browser.close();
  server.close();
});

async function show(path: string, more: Parameters<Browser["newPage"]>[0] = {}): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, ...more });
  page.on("pageerror", (error) => failures.push(String(error)));
  page.on("console", (message) => message.type() === "error" && failures.push(message.text()));
  page.on("request", (request) => asked.add(new URL(request.url()).host));
  await page.goto(url + path, { waitUntil: "networkidle" });
  return page;
}

test("each page of the documentation is a page of the site, in the menu or below an entry of it", () => {
  const pages = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" }).filter((path) =>
    path.endsWith(".md"),
  );
  const built = (path: string) => path.replace(/README\.md$/, "index.md").replace(/\.md$/, ".html");
  expect(pages.length).toBeGreaterThan(80);
  expect(pages.filter((path) => !existsSync(join(dist, "docs", built(path))))).toEqual([]);
});

test("the search finds a page by a word in it, and leads there", async () => {
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
    await page.evaluate(axe);
    const found = await page.evaluate(async () => {
      const { axe: tool } = globalThis as unknown as {
        axe: { run(what: object): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
      };
      // The theme's own button is named "Search", and shows its key, too.
      return (await tool.run({ exclude: [".DocSearch-Button"] })).violations;
    });
    expect(found.map(({ id, nodes }) => `${path} ${id}: ${nodes[0]?.html}`)).toEqual([]);
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

test("code can be copied", async () => {
  const page = await show("/docs/quick-start", { permissions: ["clipboard-read", "clipboard-write"] });
  await page.locator("div[class*=language-] button.copy").first().click({ force: true });
  expect(await page.evaluate<string>("navigator.clipboard.readText()")).toContain("npm install");
  await page.close();
});

test("a page that is not there says so", async () => {
  const page = await browser.newPage();
  await page.goto(`${url}/404.html`, { waitUntil: "networkidle" });
  expect(await page.locator("body").textContent()).toContain("PAGE NOT FOUND");
  await page.close();
});

test("no page asked for anything elsewhere, and none failed", () => {
  expect([...asked]).toEqual([new URL(url).host]);
  expect(failures).toEqual([]);
});
