import { create } from "@bufbuild/protobuf";
import { SnapshotResponseSchema } from "leasehold/etcd/gen/etcd/cluster_pb.js";
import type { CoreHost } from "../../host/host.js";
import type { FrozenState } from "../../replica/frozen-state.js";
import { CoreError, refusalFor } from "../../state/errors.js";
import { backupBytes, planBackup } from "../backup/backup-file.js";
import { finishInTurns, inTurns } from "../accounts/turns.js";
import { type ServerStream, statusOf, type StreamHandler } from "../wire/rpc/call.js";
import { drained } from "./calls/drained.js";
import type { Frozen } from "./calls/frozen.js";

/** As in etcd: small enough for any client, and not too many. */
const blobBytes = 32 * 1024;

/** A client that reads nothing for this long loses its slot, of which there are few (`Frozen`), ms. */
const stalledMs = 30_000;

/** Streams a backup of one moment, while everything else continues. */
export function snapshotHandler(host: Pick<CoreHost, "request">, frozen: Pick<Frozen, "use">): StreamHandler {
  return (call) => {
    const gone = new AbortController();
    call.whenOver(() => gone.abort(new Error("the client is gone")));
    frozen
      .use(host, call, (state) => send(call, state, gone.signal))
      .then(
        () => call.end(),
        (error: unknown) => {
          call.fail(statusOf(asCoreError(error)));
        },
      );
  };
}

function asCoreError(error: unknown): CoreError {
  return error instanceof CoreError ? error : refusalFor(error);
}

async function send(call: ServerStream, state: FrozenState, signal: AbortSignal): Promise<void> {
  const plan = await finishInTurns(planBackup(state), signal);
  let sent = 0;
  const write = async (blob: Uint8Array): Promise<void> => {
    const header = sent === 0 ? { header: state.header! } : {};
    sent += blob.length;
    const remainingBytes = BigInt(plan.bytes - sent);
    const hasRoom = call.write(create(SnapshotResponseSchema, { ...header, remainingBytes, blob }));
    if (!hasRoom) await drainedInTime(call, signal);
  };
  let parts: Buffer[] = [];
  let length = 0;
  for await (const bytes of inTurns(backupBytes(plan), signal)) {
    parts.push(bytes);
    length += bytes.length;
    if (length < blobBytes) continue;
    const whole = Buffer.concat(parts);
    const end = length - (length % blobBytes);
    for (let at = 0; at < end; at += blobBytes) await write(whole.subarray(at, at + blobBytes));
    parts = [whole.subarray(end)];
    length -= end;
  }
  await write(Buffer.concat(parts));
}

/** @throws CoreError `timeout` if the client reads nothing for too long */
async function drainedInTime(call: ServerStream, signal: AbortSignal): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const stalled = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new CoreError("timeout")), stalledMs);
  });
  try {
    await Promise.race([drained(call, signal), stalled]);
  } finally {
    clearTimeout(timer);
  }
}
