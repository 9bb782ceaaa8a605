import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { type Browser, type Page, chromium } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { simulate } from "@leasehold/sim/inner/flease/run.js";
import { scenes } from "@leasehold/sim/inner/theatre/scenes.js";
import { mainPath, packagesFolder } from "../support/built.js";

/** The theatre in a real Chromium, from Debian, served by the command. */

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let command: ChildProcess;
let browser: Browser;
let url: string;
const failures: string[] = [];
const hosts = new Set<string>();

beforeAll(async () => {
  command = spawn(process.execPath, [mainPath, "sim", "--theatre", "127.0.0.1:0"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const line = await new Promise<string>((resolve) => {
    command.stdout!.once("data", (data: Buffer) => resolve(data.toString()));
  });
  url = /http:\/\/[^/]*\//.exec(line)![0];
  browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
}, 120_000);

afterAll(async () => {
  await browser.close();
  command.kill("SIGTERM");
  await new Promise((resolve) => {
    command.on("close", resolve);
  });
});

async function show(hash: string, more: Parameters<Browser["newPage"]>[0] = {}): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...more });
  page.on("pageerror", (error) => failures.push(String(error)));
  page.on("console", (message) => message.type() === "error" && failures.push(message.text()));
  page.on("request", (request) => hosts.add(new URL(request.url()).host));
  await page.goto(url + hash);
  await page.locator(".says").waitFor();
  return page;
}

describe.each(["light", "dark"] as const)("in %s", (colorScheme) => {
  test.each(scenes)("the scene $id is played to its end, and axe finds nothing", async ({ id, title }) => {
    const page = await show(`#/scene/${id}`, { colorScheme });
    expect(await page.locator("h2.title").textContent()).toBe(title);
    expect(await page.getByRole("status").textContent()).toContain("Exclusion holds");
    await page.keyboard.press("End");
    const end = id === "mistake" ? /I1 is broken: .*A and B both hold backup/ : /Exclusion holds/;
    expect(await page.getByRole("status").textContent()).toMatch(end);
    await page.evaluate(axe);
    const found = await page.evaluate(async () => {
      const { axe: tool } = globalThis as unknown as {
        axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
      };
      return (await tool.run()).violations;
    });
    expect(found.map(({ id: rule, nodes }) => `${rule}: ${nodes[0]?.html}`)).toEqual([]);
    await page.close();
  });
});

test("a run in the browser equals the run of its seed in Node: both use the same code", async () => {
  for (const [seed, mode] of [
    [9, "c"],
    [12, "e"],
  ] as const) {
    const page = await show(`#/run?seed=${seed}&mode=${mode}`);
    const { traceHash } = await simulate({ seed, mode });
    expect(await page.locator("main").textContent()).toContain(`Trace ${traceHash}`);
    await page.close();
  }
});

test("it plays, steps forwards and back, and goes to events and to a time that is clicked", async () => {
  const page = await show("#/scene/crash");
  const says = () => page.locator(".says").textContent();
  const seconds = async () => Number.parseFloat((await page.locator(".time").textContent())!);
  const first = await says();
  await page.keyboard.press("ArrowRight");
  const second = await says();
  expect(second).not.toBe(first);
  await page.keyboard.press("ArrowLeft");
  expect(await says()).toBe(first);
  await page.keyboard.press("n");
  expect(await says()).toContain("A HOLDS backup");
  await page.getByRole("combobox", { name: "Speed" }).selectOption("16");
  const beforeS = await seconds();
  await page.keyboard.press(" ");
  await expect.poll(seconds, { timeout: 20_000 }).toBeGreaterThan(beforeS + 0.5);
  await page.keyboard.press(" ");
  const pausedS = await seconds();
  await page.waitForTimeout(300);
  expect(await seconds()).toBe(pausedS);
  const lanes = (await page.locator(".lanes").boundingBox())!;
  await page.mouse.click(lanes.x + lanes.width * 0.9, lanes.y + 30);
  await expect.poll(seconds).toBeGreaterThan(4.5);
  // Between the end of the crashed holder's lease and the beginning of its successor's is the members' guard
  // time.
  expect(await page.locator(".card.down").textContent()).toContain("crashed");
  expect(await page.locator(".stage").textContent()).toContain("HOLDS it, token 2");
  await page.close();
});

test("the form shows the run of a seed, and a mistyped address shows the first scene", async () => {
  const page = await show("#/scene/nothing");
  expect(await page.locator("h2.title").textContent()).toBe("One acquisition");
  await page.getByRole("textbox", { name: "Seed" }).fill("12");
  await page.getByRole("combobox", { name: "Clocks" }).selectOption("a");
  await page.getByRole("button", { name: "Show it" }).click();
  await page.getByText("Seed 12, clocks a").waitFor();
  expect(new URL(page.url()).hash).toBe("#/run?seed=12&mode=a");
  await page.goBack();
  await page.getByRole("heading", { name: "One acquisition" }).waitFor();
  await page.close();
});

test.each([
  ["seed=9007199254740991", "Seed 9007199254740991"],
  ["seed=9007199254740992", 'below 2^53, and not "9007199254740992"'],
  ["seed=-1", 'not "-1"'],
  ["seed=", 'not ""'],
  ["seed=1&mode=h", 'Clocks are a to g, and not "h"'],
  ["seed=1&without=views,%3Cb%3E", 'No feature is called "<b>"'],
])("the address %j is a run, or the page reports why not", async (query, says) => {
  const page = await browser.newPage();
  await page.goto(`${url}#/run?${query}`);
  await expect.poll(() => page.locator("main").textContent(), { timeout: 20_000 }).toContain(says);
  await page.close();
});

test("a second theatre at one address reports the problem, and one for other machines is refused", async () => {
  const run = async (address: string) => {
    const child = spawn(process.execPath, [mainPath, "sim", "--theatre", address]);
    let text = "";
    child.stderr.on("data", (data: Buffer) => (text += data.toString()));
    const code = await new Promise((resolve) => child.on("close", resolve));
    return [code, text];
  };
  const taken = new URL(url).host;
  expect(await run(taken)).toEqual([2, expect.stringMatching(/EADDRINUSE.*port 0 takes a free one/)]);
  expect(await run("0.0.0.0:0")).toEqual([2, expect.stringContaining("serves this machine only")]);
  expect(await run("nowhere")).toEqual([2, expect.stringMatching(/nowhere/)]);
});

test("on a phone nothing is wider than the screen", async () => {
  const page = await show("#/scene/partition", { viewport: { width: 390, height: 844 } });
  expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(390);
  await page.close();
});

test("the server has only these files, with a strict policy, and the script is small", async () => {
  const page = await fetch(url);
  expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
  expect((await fetch(`${url}../package.json`)).status).toBe(404);
  expect((await fetch(`${url}%2e%2e/package.json`)).status).toBe(404);
  expect((await fetch(url, { method: "PUT", body: "x" })).status).toBe(405);
  const script = readFileSync(join(packagesFolder, "sim/dist/page/theatre.js"));
  expect(gzipSync(script).length).toBeLessThan(100_000);
  expect(/["'`]node:/.test(script.toString())).toBe(false);
});

test("a request with another host name, as after DNS rebinding, is refused", async () => {
  const { port, hostname } = new URL(url);
  const statusFor = async (host: string): Promise<number | undefined> => {
    const asked = request({ port, hostname, headers: { host } }).end();
    const [answer] = (await once(asked, "response")) as [IncomingMessage];
    answer.resume();
    return answer.statusCode;
  };
  expect(await statusFor(`localhost:${port}`)).toBe(200);
  expect(await statusFor(`attacker.example:${port}`)).toBe(421);
});

test("it requested nothing from elsewhere, and no request failed", () => {
  expect([...hosts]).toEqual([new URL(url).host]);
  expect(failures).toEqual([]);
});
