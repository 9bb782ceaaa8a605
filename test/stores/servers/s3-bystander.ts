import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { makeDirectory, removeDirectory } from "./process.js";

/** A server in this process. The test must close it. */
export interface Bystander {
  readonly endpoint: string;
  close(): Promise<void>;
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function end(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}

/** The part of `s3rver` that is used; it has no types of its own. */
type S3rver = new (options: {
  port: number;
  silent: boolean;
  directory: string;
  configureBuckets: { name: string }[];
}) => { run(): Promise<AddressInfo>; close(): Promise<void> };

/** Starts an S3 server that does not support conditional writes: it ignores conditions. */
export async function startCareless(bucket: string): Promise<Bystander> {
  const Careless = createRequire(import.meta.url)("s3rver") as S3rver;
  const directory = await makeDirectory("s3rver");
  const options = { port: 0, silent: true, directory, configureBuckets: [{ name: bucket }] };
  const server = new Careless(options);
  const { port } = await server.run();
  return {
    endpoint: `http://127.0.0.1:${port}`,
    async close() {
      await server.close();
      await removeDirectory(directory);
    },
  };
}

/** Handles one request between a client and a server. */
export type OnTheWay = (
  asked: IncomingMessage,
  forward: () => Promise<{ status: number; headers: IncomingMessage["headers"]; body: Buffer }>,
) => Promise<{ status: number; headers?: IncomingMessage["headers"]; body?: Buffer }>;

/** Starts a proxy that leaves the signed parts of requests unchanged. */
export async function startProxy(target: string, onTheWay: OnTheWay): Promise<Bystander> {
  const answer = async (asked: IncomingMessage, response: ServerResponse) => {
    const sent = await bodyOf(asked);
    const { status, headers, body } = await onTheWay(asked, () => forward(target, asked, sent));
    response.writeHead(status, headers).end(body);
  };
  const server = createServer((asked, response) => void answer(asked, response));
  const endpoint = await listen(server);
  return { endpoint, close: () => end(server) };
}

function forward(
  target: string,
  asked: IncomingMessage,
  body: Buffer,
): Promise<{ status: number; headers: IncomingMessage["headers"]; body: Buffer }> {
  return new Promise((resolve, reject) => {
    const { method, headers, url } = asked;
    const options = { method, headers, path: url, agent: false };
    const passedOn = request(target, options, (answer) => {
      bodyOf(answer).then(
        (content) => resolve({ status: answer.statusCode!, headers: answer.headers, body: content }),
        reject,
      );
    });
    passedOn.once("error", reject);
    passedOn.end(body);
  });
}

async function bodyOf(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
