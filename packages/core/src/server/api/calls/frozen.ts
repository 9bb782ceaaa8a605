import { Room } from "leasehold/common";
import type { CoreHost, Settle } from "../../../host/host.js";
import type { FrozenState } from "../../../replica/frozen-state.js";
import { CoreError, tooManyRequests } from "../../../state/errors.js";
import type { UnaryCall } from "../../wire/rpc/call.js";
import { clientOf, deadlineOf } from "./calls.js";
import type { CredentialsReader } from "./credentials.js";

type Call = Pick<UnaryCall, "deadlineMs" | "metadata" | "peer">;

/** Each frozen state retains everything compacted since it was taken. */
const frozenMax = 4;

/** Frozen states in use. Clients share a bounded number. */
export class Frozen {
  readonly #electionMs: number;
  readonly #reader: Pick<CredentialsReader, "of">;
  readonly #room = new Room(frozenMax, tooManyRequests);

  constructor(electionMs: number, reader: Pick<CredentialsReader, "of">) {
    this.#electionMs = electionMs;
    this.#reader = reader;
  }

  /**
   * Uses a frozen state. An unauthorized caller takes no slot, however long its refusal takes.
   *
   * @throws CoreError `tooManyRequests` and others
   */
  async use<Result>(
    host: Pick<CoreHost, "request">,
    call: Call,
    read: (state: FrozenState) => Promise<Result>,
  ): Promise<Result> {
    const state = await this.#ask(host, call);
    const client = clientOf(call);
    this.#room.take(client, 1);
    try {
      return await read(state);
    } finally {
      this.#room.release(client, 1);
    }
  }

  async #ask(host: Pick<CoreHost, "request">, call: Call): Promise<FrozenState> {
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
}
