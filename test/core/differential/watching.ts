import { type JsonObject, create, fromJson, toJson } from "@bufbuild/protobuf";
import type { ClientDuplexStream, Metadata } from "@grpc/grpc-js";
import {
  type WatchRequest,
  WatchCreateRequestSchema,
  WatchRequestSchema,
  type WatchResponse,
  WatchResponseSchema,
} from "../../../src/core/gen/etcd/rpc_pb.js";
import { bytes } from "../support/client.js";

/** The first watch of a stream: with it a put at the end tells that nothing more will come. */
export const lastKey = "~last";

type Stream = ClientDuplexStream<WatchRequest, WatchResponse>;
export type OpenWatch = (metadata: Metadata) => Stream;

/** A stream of watches, and what it has told, as lines by watch: how events are put together to messages is not compared. */
export class Watching {
  readonly #stream: Stream;
  readonly #lines: Record<string, JsonObject[]> = {};
  #answers = 0;
  isAtEnd = false;
  #end: string | undefined;

  constructor(stream: Stream) {
    this.#stream = stream;
    stream.on("data", (response: WatchResponse) => this.#take(response));
    stream.on("error", (error: { code: number; details: string }) => {
      this.#end ??= `${error.code} ${error.details}`;
    });
  }

  get lines(): Readonly<Record<string, readonly JsonObject[]>> {
    return this.#end === undefined ? this.#lines : { ...this.#lines, end: [{ error: this.#end }] };
  }

  async begin(): Promise<void> {
    await this.create(
      toJson(WatchCreateRequestSchema, create(WatchCreateRequestSchema, { key: bytes(lastKey) })),
    );
  }

  /** Resolves when it is answered. */
  async create(request: unknown): Promise<void> {
    const before = this.#answers;
    const value = fromJson(WatchCreateRequestSchema, request as JsonObject);
    this.#write({ case: "createRequest", value });
    const endMs = performance.now() + 5_000;
    while (this.#answers === before && this.#end === undefined && performance.now() < endMs)
      await new Promise((resolve) => setTimeout(resolve, 1));
  }

  cancel(watchId: bigint): void {
    this.#write({ case: "cancelRequest", value: { $typeName: "etcdserverpb.WatchCancelRequest", watchId } });
  }

  progress(): void {
    this.#write({ case: "progressRequest", value: { $typeName: "etcdserverpb.WatchProgressRequest" } });
  }

  close(): void {
    this.#end ??= "";
    this.#stream.cancel();
  }

  #write(requestUnion: WatchRequest["requestUnion"]): void {
    this.#stream.write(create(WatchRequestSchema, { requestUnion }));
  }

  #take(response: WatchResponse): void {
    const json = toJson(WatchResponseSchema, response) as JsonObject;
    const {
      events = [],
      header: _header,
      watchId: _id,
      fragment: _fragment,
      cancelReason: _reason,
      ...more
    } = json;
    if (response.created || response.canceled) this.#answers += 1;
    const lines = (this.#lines[String(response.watchId)] ??= []);
    // This version of etcd gives no reason.
    if (response.events.length === 0) lines.push(more as JsonObject);
    lines.push(...(events as JsonObject[]));
    const isLast = ({ kv }: (typeof response.events)[number]) =>
      kv !== undefined && Buffer.from(kv.key).equals(bytes(lastKey));
    if (response.watchId === 0n && response.events.some(isLast)) this.isAtEnd = true;
  }
}
