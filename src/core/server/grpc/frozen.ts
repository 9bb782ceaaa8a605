import type { CoreHost, Settle } from "../../host/host.js";
import type { FrozenState } from "../../replica/frozen-state.js";
import { CoreError } from "../../state/errors.js";
import type { UnaryCall } from "../rpc/call.js";
import { clientOf, deadlineOf } from "./calls.js";
import type { CredentialsReader } from "./credentials.js";

type Call = Pick<UnaryCall, "deadlineMs" | "metadata" | "peer">;

/** Each keeps what was compacted away since it was taken. */
const frozenMax = 4;

/** States of one moment that are being read. There are a few at most. */
export class Frozen {
  readonly #electionMs: number;
  readonly #reader: CredentialsReader;
  #count = 0;

  constructor(electionMs: number, reader: CredentialsReader) {
    this.#electionMs = electionMs;
    this.#reader = reader;
  }

  /** Give each one back, whether or not it was had. @throws CoreError `tooManyRequests` and others */
  async take(host: CoreHost, call: Call): Promise<FrozenState> {
    this.#count += 1;
    if (this.#count > frozenMax) throw new CoreError("tooManyRequests");
    const credentials = await this.#reader.of(call);
    return new Promise((resolve, reject) => {
      const deadlineMs = deadlineOf(call, this.#electionMs);
      const request = { kind: "freeze", request: {} } as const;
      const settle: Settle = (result) => {
        if (result instanceof CoreError) reject(result);
        else if (result.$typeName === "leasehold.FrozenState") resolve(result);
        else reject(new CoreError("internal", new TypeError(result.$typeName)));
      };
      host.request(clientOf(call), request, deadlineMs, settle, credentials);
    });
  }

  giveBack(): void {
    this.#count -= 1;
  }
}
