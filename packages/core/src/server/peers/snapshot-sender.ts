import { once } from "node:events";
import type { Snapshots } from "../../journal/snapshots.js";
import type { InstallSnapshot, MemberId } from "../../raft/types.js";
import type { TlsFiles } from "../wire/tls/tls-files.js";
import { parseUrl } from "../wire/urls.js";
import { encodeMessage } from "./codec.js";
import { Frames, frame } from "./frames.js";
import { newestVersion } from "../../state/members.js";
import { type Self, helloBytes, readWelcome } from "./hello.js";
import { dial, onSilence } from "./sockets.js";

/** A transfer without progress for this long has failed. */
const stalledMs = 10_000;

/**
 * Streams the newest snapshot to a server that is too far behind, with back-pressure, on a separate
 * connection so that heartbeats do not wait behind it.
 *
 * @throws Error if the snapshot did not arrive completely
 */
export async function sendSnapshot(
  message: InstallSnapshot,
  to: MemberId,
  url: string,
  snapshots: Snapshots,
  self: Self,
  tls: TlsFiles | undefined,
  signal: AbortSignal,
): Promise<void> {
  const newest = (await snapshots.list()).find(({ index }) => index >= message.meta.index);
  if (newest === undefined) throw new Error("the snapshot no longer exists");
  const { meta, batches } = await snapshots.read(newest);
  const socket = dial(parseUrl("the peer's address", url), tls, () => undefined);
  const failed = new AbortController();
  const fail = (error: Error) => failed.abort(error);
  const answers: string[] = [];
  const frames = new Frames((body) => void answers.push(readWelcome(body).refusal));
  socket.on("error", fail).on("close", () => fail(new Error("the connection was closed")));
  onSilence(socket, stalledMs, () => socket.destroy(new Error("it no longer accepts data")));
  const stop = () => socket.destroy();
  signal.addEventListener("abort", stop);
  const answer = async () => {
    while (answers.length === 0) {
      const [chunk] = (await once(socket, "data", { signal: failed.signal })) as [Buffer];
      frames.push(chunk);
    }
    const refusal = answers.shift()!;
    if (refusal !== "") throw new Error(refusal);
  };
  const send = async (parts: readonly Uint8Array[]) => {
    failed.signal.throwIfAborted();
    let hasRoom = true;
    for (const part of frame(parts)) hasRoom = socket.write(part);
    if (!hasRoom) await once(socket, "drain", { signal: failed.signal });
  };
  try {
    await send([helloBytes(self, to, "snapshot")]);
    await answer();
    await send(encodeMessage({ ...message, meta }, newestVersion));
    for await (const pieces of batches) for (const piece of pieces) await send([piece]);
    await send([]);
    await answer();
  } finally {
    signal.removeEventListener("abort", stop);
    socket.destroy();
  }
}
