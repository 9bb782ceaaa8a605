import { Agent, request } from "node:http";
import { toJsonString } from "@bufbuild/protobuf";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { effort } from "../../../../../../test/support/effort.js";
import {
  hasFree,
  type HttpEdge,
  openHttpEdge,
  post,
  saying,
} from "../../../../../../test/support/http-edge.js";
import { KeptInputs } from "../../../../../../test/support/kept-inputs.js";
import { messageOf } from "../../../../../../test/support/random-messages.js";
import { routes } from "./routes.js";

/**
 * Sends arbitrary bytes to the JSON port: each request is answered as JSON or its connection closed, no
 * resources are left behind, and the port keeps serving.
 */

let edge: HttpEdge;
const agent = new Agent({ keepAlive: true, maxSockets: 8 });
beforeAll(async () => (edge = await openHttpEdge({}, { requestMs: 2_000 })));
afterAll(() => {
  agent.destroy();
  edge.close();
});

const paths = [...routes.keys()];
const nonsense = fc.oneof(
  fc.string({ unit: "binary", maxLength: 30 }),
  fc.json(),
  fc.constantFrom(
    "",
    "{",
    "}",
    "{}{}",
    "null",
    "[]",
    '{"a":"\\ud800"}',
    '"',
    '{"key":"\\ud800"}',
    '{"name":"\\ud800"}',
  ),
);

/** Requests of a route: a valid message, one with a change, two of them, or nonsense. */
const asked = fc.constantFrom(...paths).chain((path) => {
  const { input } = routes.get(path)!;
  const message = messageOf(input, 2).map((content) => toJsonString(input, content));
  const changed = fc
    .tuple(message, fc.nat(), fc.nat({ max: 3 }), fc.string({ unit: "binary", maxLength: 3 }))
    .map(([text, at, gone, put]) => {
      const from = at % (text.length + 1);
      return text.slice(0, from) + put + text.slice(from + gone);
    });
  const twice = fc.tuple(message, message).map(([one, other]) => `${one}\n${other}`);
  return fc.record({ path: fc.constant(path), body: fc.oneof(message, changed, twice, nonsense) });
});

interface Said {
  readonly status: number;
  readonly text: string;
}

/** Undefined for an empty watch stream, which gets no answer. */
function ask(path: string, body: string): Promise<Said | undefined> {
  return new Promise((resolve, reject) => {
    const asking = request({ port: edge.port, path, method: "POST", agent }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (piece: string) => {
        text += piece;
        if (path.endsWith("/watch") && text.endsWith("\n")) {
          resolve({ status: answer.statusCode!, text });
          asking.destroy();
        }
      });
      answer.on("end", () => resolve({ status: answer.statusCode!, text }));
    });
    asking.on("error", (error) => (path.endsWith("/watch") ? resolve(undefined) : reject(error)));
    asking.end(body);
    if (path.endsWith("/watch")) setTimeout(() => asking.destroy(), 20);
  });
}

/** Returns what is wrong with an answer; empty if nothing is. */
function objectionTo({ status, text }: Said): string {
  for (const line of text.trim().split("\n")) {
    const said = JSON.parse(line) as Record<string, unknown>;
    const { error } = said;
    if (status === 200 && error === undefined) continue;
    const { code, grpc_code } = (typeof error === "object" ? error : said) as Record<string, unknown>;
    if (!error || typeof (code ?? grpc_code) !== "number") return `${status}: ${line}`;
  }
  return "";
}

async function expectServing(): Promise<void> {
  const { heard, socket } = saying(edge.port, post("/v3/kv/put", '{"key":"YQ=="}'));
  await expect.poll(heard, { interval: 1 }).toContain("HTTP/1.1 200 OK");
  socket.destroy();
  await expect.poll(() => edge.open.size, { interval: 1 }).toBe(0);
  await expect.poll(() => hasFree(edge), { interval: 1 }).toBe(true);
}

const kept = new KeptInputs(new URL("kept-inputs/", import.meta.url));

/** Answers to these bytes on one connection: the statuses, and the errors without quoted input. */
async function answersTo(bytes: Uint8Array): Promise<string> {
  const { closed, socket } = saying(edge.port, bytes);
  socket.end();
  const text = await closed;
  const statuses = [...text.matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status]) => status);
  const objections = [...text.matchAll(/"message":"((?:[^"\\]|\\.)*)"/g)].map(([, said = ""]) =>
    said
      .replace(/^.* is no whole/, "… is no whole")
      // The platform's parser describes positions differently in different versions.
      .replace(/ in JSON at position .*/, " in JSON")
      .replaceAll(/\\".*\\"|'.*'/g, "…"),
  );
  return [statuses.join(" ") || "closed", ...new Set(objections)].join(": ");
}

describe("kept inputs have their recorded answers", () => {
  test.each(kept.all)("$name", async ({ bytes, outcome }) => expect(await answersTo(bytes)).toBe(outcome));
});

const found = new Map<string, Buffer>();
afterAll(() => kept.keep(found));

/** Remembers the shortest input for each answer, if findings are to be kept. */
async function look(bytes: Buffer): Promise<void> {
  if (!kept.isLooking) return;
  const answers = await answersTo(bytes);
  if (bytes.length < (found.get(answers)?.length ?? Infinity)) found.set(answers, bytes);
}

test("any request to any route is answered as JSON, with a code if it failed", async () => {
  const statuses = new Map<number, number>();
  await fc.assert(
    fc.asyncProperty(asked, async ({ body, path }) => {
      await look(Buffer.from(post(path, body)));
      const said = await ask(path, body);
      if (said === undefined) return;
      statuses.set(said.status, (statuses.get(said.status) ?? 0) + 1);
      expect(objectionTo(said)).toBe("");
    }),
    { numRuns: 60 * effort },
  );
  expect(statuses.get(200)).toBeGreaterThan(5);
  expect(statuses.get(400)).toBeGreaterThan(5);
  await expectServing();
});

/** Requests as bytes, each with a random change, several on one connection. */
test("after any bytes the connection is answered or closed, and the port keeps serving", async () => {
  const whole = asked.map(({ body, path }) => Buffer.from(post(path, body)));
  const page = fc
    .constantFrom("GET /version", "HEAD /metrics", "OPTIONS /v3/kv/put", "PUT /x", "CONNECT a:1")
    .map((line) =>
      Buffer.from(`${line} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`),
    );
  const change = fc.tuple(fc.nat(), fc.nat({ max: 4 }), fc.uint8Array({ maxLength: 4 }));
  const bytes = fc
    .tuple(
      fc.array(fc.oneof(whole, page), { minLength: 1, maxLength: 4 }),
      fc.array(change, { maxLength: 3 }),
    )
    .map(([requests, changes]) => {
      let all = Buffer.concat(requests);
      for (const [at, gone, put] of changes) {
        const from = at % (all.length + 1);
        all = Buffer.concat([all.subarray(0, from), put, all.subarray(from + gone)]);
      }
      return all;
    });
  await fc.assert(
    fc.asyncProperty(bytes, async (said) => {
      await look(said);
      const { closed, socket } = saying(edge.port, said);
      socket.end();
      expect(await closed).toMatch(/^(HTTP\/1\.1 |$)/);
    }),
    { numRuns: 40 * effort },
  );
  await expectServing();
});
