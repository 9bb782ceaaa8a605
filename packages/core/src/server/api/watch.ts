import type { WatchRequest, WatchResponse } from "leasehold/etcd/gen/etcd/rpc_pb.js";
import type { Credentials } from "../../replica/types.js";
import { CoreError } from "../../state/errors.js";
import type { CoreHost } from "../../host/host.js";
import { finishInTurns } from "../accounts/turns.js";
import type { ServerStream } from "../wire/rpc/call.js";
import { clientOf, deadlineOf } from "./calls/calls.js";
import type { CredentialsReader } from "./calls/credentials.js";
import { type Streams, fail } from "./calls/streams.js";
import { encode, isLarge } from "./calls/encode.js";

/**
 * Bound of one stream's unsent responses, more than the core emits for changes alone. Beyond it no more
 * requests are read, since each is answered, too.
 */
const unsentMax = 1_024;

/**
 * A stream of watches. Unread responses wait here up to the core's bound (`watchResponsesMax`), as each is
 * reported to the core only when the connection has accepted it. The rest waits in history.
 */
export function watchHandler(
  host: CoreHost,
  streams: Streams,
  electionMs: number,
  reader: Pick<CredentialsReader, "of">,
) {
  return (stream: ServerStream): void => {
    if (!streams.admit(stream)) return;
    const gate = new Gate(stream);
    let unsent = 0;
    const number = host.openWatches(clientOf(stream), (response) => {
      if (response instanceof CoreError) {
        fail(stream, response);
        return;
      }
      unsent += 1;
      if (unsent === unsentMax) gate.close();
      writing.write(response, () => {
        unsent -= 1;
        if (unsent === unsentMax - 1) gate.open();
        host.watchSent(number, 1);
      });
    });
    const writing = new InOrder(stream);
    let isOver = false;
    const over = () => {
      isOver = true;
      host.closeWatches(number);
    };
    const watch = (request: WatchRequest) => {
      // Read each time, since a signed token may have expired.
      const credentials = reader.of(stream);
      if (!(credentials instanceof Promise)) {
        host.watch(number, request, credentials);
        return;
      }
      gate.close();
      void orUnknown(credentials).then((read) => {
        // The client may be gone by now, or have cancelled.
        if (isOver) return;
        host.watch(number, request, read);
        gate.open();
      });
    };
    const begin = () =>
      stream.listen(
        (request) => {
          if (request instanceof CoreError) fail(stream, request);
          else watch(request as WatchRequest);
        },
        // A client's half-close also ends its watches.
        () => {
          over();
          stream.end();
        },
      );
    const credentials = reader.of(stream);
    if (credentials === undefined && host.status().hasCaughtUp) begin();
    else void heardOf(host, stream, electionMs, credentials).then(begin);
    stream.whenOver(over);
  };
}

/** A token that never exists. */
const unknown: Credentials = { kind: "token", token: "" };

function orUnknown(read: Credentials | Promise<Credentials>): Promise<Credentials> {
  return Promise.resolve(read).catch(() => unknown);
}

/**
 * A request that depends on a server's own rights waits until the server has caught up to the time of the
 * request, or as far as possible. After that each watch is checked separately. A newly started server without
 * a leader has no rights yet.
 */
async function heardOf(
  host: CoreHost,
  stream: ServerStream,
  electionMs: number,
  read: Credentials | Promise<Credentials> | undefined,
): Promise<void> {
  const credentials = read && (await orUnknown(read));
  return new Promise((resolve) => {
    const deadlineMs = deadlineOf(stream, electionMs);
    const request = { kind: "user", request: {} } as const;
    host.request(clientOf(stream), request, deadlineMs, () => resolve(), credentials);
  });
}

/** Pauses a client's requests while any holder wants a pause. */
class Gate {
  readonly #stream: ServerStream;
  #closedBy = 0;

  constructor(stream: ServerStream) {
    this.#stream = stream;
  }

  close(): void {
    this.#closedBy += 1;
    this.#stream.pause();
  }

  open(): void {
    this.#closedBy -= 1;
    if (this.#closedBy === 0) this.#stream.resume();
  }
}

/** Encodes long responses in turns, and keeps later ones behind them. */
class InOrder {
  readonly #stream: ServerStream;
  #last: Promise<void> | undefined;

  constructor(stream: ServerStream) {
    this.#stream = stream;
  }

  write(response: WatchResponse, sent: () => void): void {
    if (this.#last === undefined && !isLarge(response)) {
      this.#stream.write(response, sent);
      return;
    }
    const last = this.#after(this.#last, response, sent).catch((error: unknown) =>
      fail(this.#stream, new CoreError("internal", error)),
    );
    this.#last = last;
    void last.then(() => {
      if (this.#last === last) this.#last = undefined;
    });
  }

  async #after(before: Promise<void> | undefined, response: WatchResponse, sent: () => void): Promise<void> {
    await before;
    const content = isLarge(response) ? await finishInTurns(encode(response)) : response;
    // The client may be gone by now.
    if (this.#stream.writable) this.#stream.write(content, sent);
  }
}
