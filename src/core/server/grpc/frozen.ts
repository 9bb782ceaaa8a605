import type { ServerUnaryCall } from "@grpc/grpc-js";
import type { CoreHost } from "../../host/host.js";
import type { FrozenState } from "../../replica/frozen-state.js";
import { CoreError } from "../../state/errors.js";
import { deadlineOf } from "./calls.js";

type Call = Pick<ServerUnaryCall<unknown, unknown>, "getDeadline" | "getPeer" | "metadata">;

/** Each keeps what was compacted away since it was taken. */
const frozenMax = 4;

/** States of one moment that are being read. There are a few at most. */
export class Frozen {
  readonly #electionMs: number;
  #count = 0;

  constructor(electionMs: number) {
    this.#electionMs = electionMs;
  }

  /** Give each one back, whether or not it was had. @throws CoreError `tooManyRequests` and others */
  take(host: CoreHost, call: Call): Promise<FrozenState> {
    this.#count += 1;
    if (this.#count > frozenMax) return Promise.reject(new CoreError("tooManyRequests"));
    return new Promise((resolve, reject) => {
      const deadlineMs = deadlineOf(call, this.#electionMs);
      const request = { kind: "freeze", request: {} } as const;
      host.request(call.getPeer(), request, deadlineMs, (result) => {
        if (result instanceof CoreError) reject(result);
        else if (result.$typeName === "leasehold.FrozenState") resolve(result);
        else reject(new CoreError("internal", new TypeError(result.$typeName)));
      });
    });
  }

  giveBack(): void {
    this.#count -= 1;
  }
}
