import { type JsonObject, create, fromJson, toJson } from "@bufbuild/protobuf";
import type { ClientDuplexStream, Metadata } from "@grpc/grpc-js";
import {
  type WatchRequest,
  WatchCreateRequestSchema,
  WatchRequestSchema,
  type WatchResponse,
  WatchResponseSchema,
} from "../../../packages/leasehold/src/etcd/gen/etcd/rpc_pb.js";
import { bytes } from "../support/client.js";
import { base64 } from "./action.js";

/** The first watch of a stream: with it a put at the end tells that nothing more will come. */
export const lastKey = "~last";

type Stream = ClientDuplexStream<WatchRequest, WatchResponse>;
export type OpenWatch = (metadata: Metadata) => Stream;

/** A stream of watches, and what it has told, as lines by watch: how events are put together to messages is not compared. */
export class Watching {
  readonly #stream: Stream;
  readonly #lines: Record<string, JsonObject[]> = {};
  #answers = 0;
  #compactions = 0;
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
    await this.#until(() => this.#answers !== before);
  }

  /** Resolves when it is answered, which it is only if there is such a watch. */
  async cancel(watchId: bigint): Promise<void> {
    this.#write({ case: "cancelRequest", value: { $typeName: "etcdserverpb.WatchCancelRequest", watchId } });
    await this.progress();
  }

  async progress(): Promise<void> {
    const count = () => this.#lines["-1"]?.length ?? 0;
    const before = count();
    this.#write({ case: "progressRequest", value: { $typeName: "etcdserverpb.WatchProgressRequest" } });
    await this.#until(() => count() > before);
  }

  /**
   * Resolves when all watches of the server that began in the past have told of it: etcd looks after them all at
   * once, some ten times a second, and one that begins where all is compacted ends then.
   */
  async synced(): Promise<void> {
    const before = this.#compactions;
    await this.create({ key: base64("~past"), startRevision: "1" });
    await this.#until(() => this.#compactions > before);
  }

  async #until(isSo: () => boolean): Promise<void> {
    const endMs = performance.now() + 5_000;
    while (!isSo() && this.#end === undefined && performance.now() < endMs)
      await new Promise((resolve) => setTimeout(resolve, 2));
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
    if (response.created) this.#answers += 1;
    if (response.compactRevision > 0n) this.#compactions += 1;
    const lines = (this.#lines[String(response.watchId)] ??= []);
    // This version of etcd gives no reason.
    if (response.events.length === 0) lines.push(more as JsonObject);
    lines.push(...(events as JsonObject[]));
    const isLast = ({ kv }: (typeof response.events)[number]) =>
      kv !== undefined && Buffer.from(kv.key).equals(bytes(lastKey));
    if (response.watchId === 0n && response.events.some(isLast)) this.isAtEnd = true;
  }
}
