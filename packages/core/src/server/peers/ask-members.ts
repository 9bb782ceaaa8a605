import { once } from "node:events";
import type { PeerWelcome } from "leasehold/etcd/gen/leasehold/peer_pb.js";
import type { TlsFiles } from "../wire/tls/tls-files.js";
import { parseUrl } from "../wire/urls.js";
import { Frames, frame } from "./frames.js";
import { questionBytes, readWelcome } from "./hello.js";
import { dial } from "./sockets.js";

const askMs = 2_000;

/**
 * Asks a server of a core for its members.
 *
 * @param name the asking server's name
 * @throws Error if there is no answer
 */
export async function askMembers(url: string, name: string, tls: TlsFiles | undefined): Promise<PeerWelcome> {
  const socket = dial(parseUrl("the peer's address", url), tls, () => {
    for (const part of frame([questionBytes(name)])) socket.write(part);
  });
  const answers: PeerWelcome[] = [];
  const frames = new Frames((body) => void answers.push(readWelcome(body)));
  const signal = AbortSignal.timeout(askMs);
  try {
    while (answers.length === 0) {
      const [chunk] = (await Promise.race([
        once(socket, "data", { signal }),
        once(socket, "close", { signal }).then(() => Promise.reject(new Error("it has hung up"))),
      ])) as [Buffer];
      frames.push(chunk);
    }
  } finally {
    socket.destroy();
  }
  const [answer] = answers as [PeerWelcome];
  if (answer.refusal !== "") throw new Error(answer.refusal);
  return answer;
}
