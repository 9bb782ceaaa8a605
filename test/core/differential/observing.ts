import { type DescMessage, type JsonObject, toJson } from "@bufbuild/protobuf";
import type { ClientReadableStream } from "@grpc/grpc-js";

/**
 * Who looks on at an election. Whoever leads for a moment only, both servers may miss, and the revision of the header
 * is when they looked: what counts is whom it was told of last, at the end of the sequence, if somebody leads then.
 */
export class Observing {
  readonly name: string;
  readonly #stream: ClientReadableStream<unknown>;
  last: JsonObject | undefined;
  isCompared = false;

  constructor(name: string, stream: ClientReadableStream<unknown>, output: DescMessage) {
    this.name = name;
    this.#stream = stream;
    stream.on("data", (response) => {
      this.last = toJson(output, response as never) as JsonObject;
    });
    stream.on("error", ({ code, details }: { code?: number; details?: string }) => {
      this.last = { error: `${code} ${details}` };
    });
  }

  close(): void {
    this.#stream.cancel();
  }
}
