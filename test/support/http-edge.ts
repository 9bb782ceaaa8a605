import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { create } from "@bufbuild/protobuf";
import { Room } from "../../packages/leasehold/src/common/room.js";
import { type CoreError, tooManyRequests } from "../../packages/core/src/state/errors.js";
import { Counters } from "../../packages/core/src/server/metrics/counters.js";
import type { Http1 } from "../../packages/core/src/server/wire/port.js";
import { LocalClient } from "../../packages/core/src/server/api/calls/local.js";
import { methodsOf } from "../../packages/core/src/server/api/calls/methods.js";
import { routes } from "../../packages/core/src/server/api/http/routes.js";
import { clientHttp, metricsHttp } from "../../packages/core/src/server/api/http/server.js";
import { type HttpTimes, httpTimes } from "../../packages/core/src/server/wire/http/timeouts.js";
import type {
  Method,
  ServerStream,
  UnaryCall,
  UnaryHandler,
} from "../../packages/core/src/server/wire/rpc/call.js";

export interface HttpEdge {
  readonly port: number;
  /** The port that serves only metrics and health. */
  readonly metricsPort: number;
  readonly room: Room<CoreError>;
  /** Calls that have reached a handler and aren't over. */
  readonly open: Set<ServerStream | UnaryCall>;
  close(): void;
}

type Handler = UnaryHandler | ((stream: ServerStream) => void);

interface Changed extends Partial<HttpTimes> {
  readonly heldBytesMax?: number;
  readonly metrics?: () => string;
}

const heldBytesMax = 256 * 1024 * 1024;

/** Opens the JSON port, with these handlers; without one, a request is answered with an empty message. */
export async function openHttpEdge(
  handlers: Readonly<Record<string, Handler>> = {},
  { heldBytesMax: max = heldBytesMax, metrics = () => "metric 1\n", ...times }: Changed = {},
): Promise<HttpEdge> {
  const open: HttpEdge["open"] = new Set();
  const noted = <Call extends ServerStream | UnaryCall>(call: Call) => {
    open.add(call);
    call.whenOver(() => open.delete(call));
    return call;
  };
  const methods = new Map<string, Method>();
  for (const { methodKind, name, output, parent } of routes.values()) {
    const answer = create(output);
    const own = handlers[name];
    const unary: UnaryHandler = (call, callback) =>
      own === undefined
        ? (noted(call), callback(null, answer))
        : (own as UnaryHandler)(noted(call), callback);
    const stream = (call: ServerStream) => {
      noted(call);
      if (own !== undefined) (own as (stream: ServerStream) => void)(call);
      else if (methodKind === "bidi_streaming")
        call.listen(
          () => void call.write(answer),
          () => call.end(),
        );
      else {
        call.write(answer);
        call.end();
      }
    };
    const handler = methodKind === "unary" ? unary : (stream as never);
    for (const [found, method] of methodsOf(parent, { [name]: handler }, new Counters()))
      methods.set(`/${parent.typeName}/${found}`, method);
  }
  const room = new Room(max, tooManyRequests);
  const local = new LocalClient((path) => methods.get(path));
  const host = { status: () => ({ leader: 1n, corruptAlarms: [], spaceAlarms: [] }) } as never;
  const parts = { host, local, room, metrics, healthAsked: { healthy: 0, unhealthy: 0 } };
  const clients = await listening(
    clientHttp(parts, 100, { hosts: undefined, origins: undefined }, { ...httpTimes, ...times }),
  );
  const looking = await listening(metricsHttp(parts));
  const close = () => {
    clients.close();
    looking.close();
  };
  return { port: clients.port, metricsPort: looking.port, room, open, close };
}

async function listening(http: Http1): Promise<{ readonly port: number; close(): void }> {
  const sockets = new Set<Socket>();
  const listener = createServer((socket) => {
    sockets.add(socket.on("error", () => undefined));
    http.take(socket);
  }).listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo;
  const close = () => {
    listener.close();
    http.close();
    for (const socket of sockets) socket.destroy();
  };
  return { port, close };
}

/** True if this much of the memory for requests is free. Default: all of it. */
export function hasFree({ room }: HttpEdge, bytes = heldBytesMax): boolean {
  const isFree = room.tryTake("probe", bytes);
  if (isFree) room.release("probe", bytes);
  return isFree;
}

/** A client that sends these words, and collects answers until its connection is closed. */
export function saying(port: number, ...words: readonly (string | Uint8Array)[]) {
  const socket = connect(port, "127.0.0.1").setNoDelay(true);
  let heard = "";
  socket.on("error", () => undefined).on("data", (piece) => (heard += String(piece)));
  for (const word of words) socket.write(word);
  const closed = new Promise<string>((resolve) => socket.once("close", () => resolve(heard)));
  return { socket, closed, heard: () => heard };
}

export function post(path: string, body: string, length = Buffer.byteLength(body)): string {
  return `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n${body}`;
}
