import { type IncomingMessage, createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { FenceError } from "./errors.js";
import { fetchWithToken, guard, guardExpress } from "./http.js";

function asked(token?: string): Request {
  return new Request(
    "http://reports/nightly",
    token === undefined ? {} : { headers: { "x-fencing-token": token } },
  );
}

test("a guard passes on the request, its token and the context, and finds the fence by the request", async () => {
  const put = guard(
    async (request: Request, token, place: string) => new Response(`${request.url} ${token} ${place}`),
    { fence: (request) => ({ greatest: async () => (request.url.endsWith("nightly") ? 5n : 0n) }) },
  );
  expect(await (await put(asked("5"), "here")).text()).toBe("http://reports/nightly 5 here");
  expect((await put(asked("4"), "here")).status).toBe(412);
});

test("a header that appears twice is not a token, even if both values are equal", async () => {
  const request = asked("7");
  request.headers.append("x-fencing-token", "7");
  const put = guard(() => new Response());
  expect((await put(request)).status).toBe(400);
  expect(await (await put(asked())).json()).toEqual({
    type: "urn:leasehold:error:TOKEN_MISSING",
    title: "The request has no token.",
    status: 428,
    code: "TOKEN_MISSING",
  });
});

test("an error of the handler or its fence becomes an answer only if it is stale", async () => {
  const throws = (reason: Error) =>
    guard(async () => {
      throw reason;
    })(asked("7"));
  expect((await throws(new FenceError("TOKEN_STALE"))).status).toBe(412);
  await expect(throws(new FenceError("WRITE_UNDONE"))).rejects.toMatchObject({ code: "WRITE_UNDONE" });
  const greatest = () => Promise.reject(new Error("the fence is away"));
  await expect(guard(() => new Response(), { fence: { greatest } })(asked("7"))).rejects.toThrow("away");
});

/** Starts a Node server and returns its URL. */
async function serve(listener: Parameters<typeof createServer>[1]): Promise<string> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

test("a refusal after an answer has begun goes to next", async () => {
  const seen: unknown[] = [];
  const put = guardExpress(async (_, response) => {
    response.end("begun");
    throw new FenceError("TOKEN_STALE");
  });
  const url = await serve((request, response) => void put(request, response, (reason) => seen.push(reason)));
  expect(await (await fetchWithToken(7n, url)).text()).toBe("begun");
  expect(seen).toEqual([expect.objectContaining({ code: "TOKEN_STALE" })]);
});

test("a refusal that a handler passes to next gets the same answer, and other errors pass through", async () => {
  const seen: unknown[] = [];
  const other = new Error("other");
  const put = guardExpress((request: IncomingMessage, _, __, next) =>
    next(request.url === "/stale" ? new FenceError("TOKEN_STALE") : other),
  );
  const url = await serve((request, response) => {
    void put(request, response, (reason) => {
      seen.push(reason);
      response.end("passed");
    });
  });
  await expect(fetchWithToken(7n, `${url}stale`)).rejects.toMatchObject({ code: "TOKEN_STALE" });
  expect(await (await fetchWithToken(7n, url)).text()).toBe("passed");
  expect(seen).toEqual([other]);
});

test.each([
  ["another problem", "application/problem+json", '{"code":"OTHER"}'],
  ["no problem", "application/json", '{"code":"TOKEN_STALE"}'],
  ["no JSON", "application/problem+json", "{"],
  ["null", "application/problem+json", "null"],
  ["a flood", "application/problem+json", `{"code":"TOKEN_STALE","detail":"${"x".repeat(1_000_000)}"}`],
])("a 412 with %s is returned with its body intact", async (_, type, body) => {
  const url = await serve((__, response) => response.writeHead(412, { "content-type": type }).end(body));
  expect(await (await fetchWithToken(7n, url)).text()).toBe(body);
});

test("the token replaces one that the request already has", async () => {
  const url = await serve((request, response) => response.end(JSON.stringify(request.headers)));
  const headers = { "x-fencing-token": "6", "x-other": "stays" };
  const sent = async (response: Promise<Response>) => (await response).json();
  const expected = expect.objectContaining({ "x-fencing-token": "7", "x-other": "stays" }) as unknown;
  expect(await sent(fetchWithToken(7n, new Request(url, { headers })))).toEqual(expected);
  expect(await sent(fetchWithToken(7n, url, { headers }))).toEqual(expected);
});
