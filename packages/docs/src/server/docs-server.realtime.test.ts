import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { type Socket, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { WebServer } from "@leasehold/console/web";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { docsServer } from "./docs-server.js";

/** The tests serve a small site. `test/site` tests the built one. */

const policyOf = (rest: string) =>
  `<meta http-equiv="Content-Security-Policy" content="default-src 'none'${rest}">`;
const hashed = "; script-src 'sha256-x'";
let folder: string;
let server: WebServer;
let port: number;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "leasehold-docs-"));
  const pages = join(folder, "pages");
  const write = (path: string, text: string) => {
    mkdirSync(join(pages, path, ".."), { recursive: true });
    writeFileSync(join(pages, path), text);
  };
  write("index.html", `${policyOf(hashed)}first`);
  write("404.html", "nothing");
  write("docs/index.html", "all pages");
  write("docs/quick start.html", "quick");
  write("playground/frame.html", `${policyOf("; worker-src blob:")}frame`);
  write("assets/app.js", "app");
  write("notes.exe", "no page");
  writeFileSync(join(folder, "secret.html"), "secret");
  symlinkSync(join(folder, "secret.html"), join(pages, "link.html"));
  server = docsServer(pages, "127.0.0.1");
  port = Number((await server.listen({ host: "127.0.0.1", port: 0 })).split(":")[1]);
});
afterAll(async () => {
  await server.close();
  rmSync(folder, { recursive: true });
});

/** Sends the path unchanged; `fetch` would normalize it. */
async function ask(path: string, headers: Record<string, string> = {}, method = "GET") {
  const asked = request({ host: "127.0.0.1", port, path, method, headers }).end();
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  let text = "";
  for await (const part of answer.setEncoding("utf8")) text += part;
  const { "content-type": type, "content-security-policy": policy = "", location } = answer.headers;
  return { status: answer.statusCode, type, policy, location, text };
}

const html = "text/html; charset=utf-8";

test("pages are served with and without their ending, and each file with its type", async () => {
  expect(await ask("/")).toMatchObject({ status: 200, type: html, text: expect.stringContaining("first") });
  expect(await ask("/docs/quick%20start")).toMatchObject({ status: 200, type: html, text: "quick" });
  expect(await ask("/docs/quick%20start.html?x=1")).toMatchObject({ status: 200, text: "quick" });
  expect(await ask("/docs?x=1")).toMatchObject({ status: 308, location: "/docs/?x=1" });
  expect(await ask("/docs/")).toMatchObject({ status: 200, text: "all pages" });
  expect(await ask("/assets/app.js")).toMatchObject({ type: "text/javascript; charset=utf-8", text: "app" });
  expect(await ask("/nowhere")).toMatchObject({ status: 404, type: html, text: "nothing" });
  expect(await ask("/", {}, "HEAD")).toMatchObject({ status: 200, text: "" });
  expect(await ask("/", {}, "PUT")).toMatchObject({ status: 405 });
});

test("each page has its own policy as a header, and the playground's frame has an opaque origin", async () => {
  const end = "; frame-ancestors 'self'";
  expect((await ask("/")).policy).toBe(`default-src 'none'${hashed}${end}`);
  expect((await ask("/playground/frame.html")).policy).toBe(
    `default-src 'none'; worker-src blob:; sandbox allow-scripts${end}`,
  );
  expect((await ask("/playground/frame")).policy).toContain("; sandbox allow-scripts");
  for (const path of ["/docs/", "/nowhere", "/assets/app.js"])
    expect((await ask(path)).policy).toMatch(
      /^default-src 'none'; script-src 'self';.*frame-ancestors 'self'$/,
    );
});

test.each([
  "/../secret.html",
  "/docs/../../secret.html",
  "/%2e%2e/secret.html",
  "/..%2fsecret.html",
  "/docs/..%2f..%2fsecret.html",
  "/%252e%252e%252fsecret.html",
  "/..%5csecret.html",
  "/..\\secret.html",
  "/%c0%ae%c0%ae/secret.html",
  "/index.html%00.js",
  "/%00",
  "/%",
  "//secret.html",
  "/./link.html",
  "/link",
  "/notes.exe",
  "/assets/",
  "/docs/quick%20start/",
  "/constructor",
  "*",
])("%s is no page", async (path) => {
  const { status, text } = await ask(path);
  expect([404, 400]).toContain(status);
  expect(text).not.toContain("secret");
});

test("a host name that another site points here is refused, and so are its requests", async () => {
  expect(await ask("/", { host: `localhost:${port}` })).toMatchObject({ status: 200 });
  expect(await ask("/", { host: `evil.example:${port}` })).toMatchObject({ status: 421 });
  expect(await ask("/", { "sec-fetch-site": "cross-site" })).toMatchObject({ status: 403 });
});

test("256 connections are served at a time, and another one is closed", async () => {
  const crowded = docsServer(join(folder, "pages"), "127.0.0.1");
  onTestFinished(() => crowded.close());
  const at = Number((await crowded.listen({ host: "127.0.0.1", port: 0 })).split(":")[1]);
  const sockets: Socket[] = [];
  onTestFinished(() => sockets.forEach((socket) => socket.destroy()));
  const dial = async (): Promise<Socket> => {
    const socket = connect(at, "127.0.0.1").on("error", () => undefined);
    sockets.push(socket);
    await once(socket, "connect");
    return socket;
  };
  for (let count = 0; count < 255; count += 1) await dial();
  const answered = async (): Promise<boolean> => {
    const socket = await dial();
    socket.write("GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n");
    const first = await Promise.race([once(socket, "data").catch(() => []), once(socket, "close")]);
    return String(first[0]).startsWith("HTTP/1.1 200");
  };
  expect([await answered(), await answered()]).toEqual([true, false]);
  sockets[0]!.destroy();
  await expect.poll(answered).toBe(true);
});
