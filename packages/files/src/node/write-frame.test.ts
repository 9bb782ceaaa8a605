import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { afterEach, expect, it } from "vitest";
import { FrameReader, writeFrame } from "./frames.js";

const sockets: { destroy(): void }[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

async function pair(): Promise<readonly [Socket, Socket]> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("it does not listen");
  const one = connect(address.port, "127.0.0.1");
  const [other] = (await once(server, "connection")) as [Socket];
  server.close();
  sockets.push(one, other);
  return [one, other];
}

it("sends the frames of one turn together, in order, with long and short bodies", async () => {
  const [one, other] = await pair();
  const bodies = [0, 10, 70_000, 3, 300_000, 0].map((length, at) => Buffer.alloc(length, at + 1));
  const reader = new FrameReader();
  const found: { head: unknown; body: Buffer }[] = [];
  const done = new Promise<void>((resolve) => {
    other.on("data", (chunk: Buffer) => {
      for (const { head, body } of reader.read(chunk)) found.push({ head, body: Buffer.from(body) });
      if (found.length === 2 * bodies.length) resolve();
    });
  });
  for (const [at, body] of bodies.entries()) writeFrame(one, { at }, body);
  expect(one.writableCorked).toBe(1);
  await new Promise(setImmediate);
  expect(one.writableCorked).toBe(0);
  for (const [at, body] of bodies.entries()) writeFrame(one, { at }, body);
  await done;
  const heads = bodies.map((_, at) => ({ at }));
  expect(found.map(({ head }) => head)).toEqual([...heads, ...heads]);
  // `toEqual` would take seconds for bodies of this size.
  for (const [at, { body }] of found.entries()) expect(body.equals(bodies[at % bodies.length]!)).toBe(true);
});

it("sends a frame that is followed by the end of the connection", async () => {
  const [one, other] = await pair();
  const came = once(other, "data");
  writeFrame(one, { last: true }, Buffer.from("x"));
  one.end();
  const [chunk] = (await came) as [Buffer];
  expect(new FrameReader().read(chunk).map(({ head }) => head)).toEqual([{ last: true }]);
});
