import { type IncomingMessage, request } from "node:http";
import { connect } from "node:net";
import { once } from "node:events";
import { type Leases, open } from "leasehold";
import { settingsOf } from "leasehold/cli";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type RunningConsole, startConsole } from "../index.js";
import { streamsMax } from "./http.js";
import { partMax } from "./live.js";

/**
 * Requests to the console's server, as browsers and other clients send them. `test/console` tests the page
 * itself.
 */

let leases: Leases;
let console: RunningConsole;
const name = `memory:http-${process.pid}`;

beforeEach(async () => {
  leases = await open(name);
  const settings = settingsOf({ endpoints: [name] });
  console = await startConsole(leases, settings, { address: "127.0.0.1:0", allowChanges: true });
});
afterEach(async () => {
  await console.close();
  await leases.close();
});

const url = (path: string) => new URL(path, console.url);
const json = { "content-type": "application/json" };
const act = (body: string) => fetch(url("api/act"), { method: "POST", headers: json, body });

interface Message {
  readonly type: string;
  readonly leases?: readonly { readonly name: string }[];
  readonly held?: readonly { readonly name: string }[];
  readonly gone?: readonly string[];
}

/** Opens the stream of one page, which stays open until `close`. */
async function live(search = "") {
  const asked = request(url(`api/live${search}`)).end();
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  const messages: Message[] = [];
  let text = "";
  answer.setEncoding("utf8").on("data", (more: string) => {
    const parts = (text + more).split("\n\n");
    text = parts.pop()!;
    for (const part of parts) messages.push(JSON.parse(part.replace(/^data: /, "")) as Message);
  });
  answer.on("error", () => undefined);
  return { status: answer.statusCode, messages, close: () => asked.destroy() };
}

test("two pages see the same, and one that disconnects disturbs neither the other nor the server", async () => {
  const [one, two] = [await live(), await live()];
  const lease = await leases.acquire("demo/a");
  const sees = ({ messages }: typeof one) =>
    messages.some(({ held = [] }) => held.some((each) => each.name === "demo/a"));
  await expect.poll(() => sees(one) && sees(two)).toBe(true);
  one.close();
  await lease.release();
  await expect.poll(() => two.messages.some(({ gone = [] }) => gone.includes("demo/a"))).toBe(true);
  two.close();
});

test("one page beyond the maximum is refused, until another has closed", async () => {
  const pages = await Promise.all(Array.from({ length: streamsMax }, () => live()));
  expect(new Set(pages.map(({ status }) => status))).toEqual(new Set([200]));
  expect((await live()).status).toBe(503);
  pages.pop()!.close();
  await expect
    .poll(async () => {
      const page = await live();
      if (page.status === 200) pages.push(page);
      return page.status;
    })
    .toBe(200);
  for (const page of pages) page.close();
});

test("a body of the greatest length is read, and a longer one is refused", async () => {
  const body = (bytes: number) => {
    const start = '{"action":"release","name":"a","to":"';
    return `${start}${"x".repeat(bytes - start.length - 2)}"}`;
  };
  expect((await act(body(4_096))).status).toBe(200);
  expect((await act(body(4_097))).status).toBe(400);
});

test.each([
  ["no JSON", "{"],
  ["another action", '{"action":"drop","name":"a"}'],
  ["no name", '{"action":"break"}'],
])("a change with %s is refused", async (_what, body) => {
  const answer = await act(body);
  expect([answer.status, await answer.json()]).toEqual([
    400,
    expect.objectContaining({ code: "INVALID_CONFIG" }),
  ]);
});

test("two changes at once both get an answer, and an invalid name gets an error with its code", async () => {
  await using _lease = await leases.acquire("demo/twice");
  const both = await Promise.all([1, 2].map(() => act('{"action":"release","name":"demo/twice"}')));
  expect(both.map(({ status }) => status)).toEqual([200, 200]);
  const bad = await fetch(url(`api/lease?name=${encodeURIComponent("\0")}`));
  expect([bad.status, await bad.json()]).toEqual([400, expect.objectContaining({ code: "INVALID_NAME" })]);
});

test.each([
  ["a path that is no URL", "GET // HTTP/1.1\r\nhost: localhost\r\n\r\n", /^HTTP\/1\.1 40\d/],
  ["no host", "GET / HTTP/1.0\r\n\r\n", /^HTTP\/1\.1 421/],
  [
    "HEAD",
    "HEAD /api/lease?name=a HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
    /^HTTP\/1\.1 200/,
  ],
  ["another method", "PUT / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n", /^HTTP\/1\.1 405/],
])("%s gets an answer", async (_what, text, wanted) => {
  const { port } = new URL(console.url);
  const socket = connect(Number(port), "127.0.0.1");
  socket.end(text);
  const [data] = (await once(socket, "data")) as [Buffer];
  expect(data.toString()).toMatch(wanted);
  socket.destroy();
});

test("a body that breaks off harms no other request", async () => {
  const { port } = new URL(console.url);
  const socket = connect(Number(port), "127.0.0.1");
  const head =
    "POST /api/act HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
  socket.write(head);
  await new Promise((resolve) => setTimeout(resolve, 50));
  socket.destroy();
  expect((await fetch(url("api/lease?name=a"))).status).toBe(200);
});

test("a part has at most its greatest number of leases, and the next part has the rest", async () => {
  const count = partMax + 1;
  const names = Array.from({ length: count }, (_, at) => `many/${String(at).padStart(6, "0")}`);
  for (let at = 0; at < count; at += 500)
    await Promise.all(
      names.slice(at, at + 500).map((each) => leases.acquire(each, { autoRenew: false, ttl: "10m" })),
    );
  const first = async (search: string) => {
    const page = await live(search);
    await expect
      .poll(() => page.messages.find(({ type }) => type === "all")?.leases?.length)
      .toBeGreaterThan(0);
    page.close();
    return page.messages.find(({ type }) => type === "all")!.leases!;
  };
  await expect.poll(async () => (await first("")).length, { timeout: 20_000 }).toBe(partMax);
  const shown = await first("");
  expect(shown.at(-1)?.name).toBe(names.at(-2));
  expect((await first(`?after=${shown.at(-1)!.name}`)).map((each) => each.name)).toEqual([names.at(-1)]);
}, 60_000);
