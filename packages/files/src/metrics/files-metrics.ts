import { statfs } from "node:fs/promises";
import type { Recorder } from "leasehold/metrics";
import type { Files, FilesStatus, RequestObserver, ServedRequest } from "../types.js";
import type { filesCatalogue } from "./catalogue.js";

const states = [
  "serving",
  "waiting",
  "rebuilding",
  "closed",
] as const satisfies readonly FilesStatus["state"][];

/** Methods with series of their own. Clients may send any word as a method. */
const methods = new Set([
  ..."GET HEAD PUT POST DELETE OPTIONS".split(" "),
  ..."PROPFIND PROPPATCH MKCOL COPY MOVE LOCK UNLOCK".split(" "),
  // Not an HTTP method: a GET of events, which lasts until the client ends it.
  "FOLLOW",
]);

/** The metrics of one node. */
export class FilesMetrics implements RequestObserver {
  readonly #recorder: Recorder<typeof filesCatalogue>;
  #isLooking = false;

  constructor(recorder: Recorder<typeof filesCatalogue>) {
    this.#recorder = recorder;
  }

  begun(api: string): void {
    this.#recorder.add("leasehold_files_requests_open", [api]);
  }

  ended({ api, method, outcome, tookMs, received, sent }: ServedRequest): void {
    const recorder = this.#recorder;
    const known = methods.has(method) ? method : "other";
    recorder.add("leasehold_files_requests_open", [api], -1);
    recorder.observe("leasehold_files_request_duration", [api, known, outcome], tookMs / 1_000);
    recorder.add("leasehold_files_received", [api], received);
    recorder.add("leasehold_files_sent", [api], sent);
  }

  synced(tookMs: number): void {
    this.#recorder.observe("leasehold_files_disk_sync_duration", [], tookMs / 1_000);
  }

  /**
   * Updates the node's state at each reading. Returns a function that stops this.
   * @param directory where its disk is
   */
  watch(files: Pick<Files, "status">, directory: string): () => void {
    void this.#lookAtDisk(directory);
    return this.#recorder.beforeRead(() => this.#show(files.status(), directory));
  }

  #show(status: FilesStatus, directory: string): void {
    const recorder = this.#recorder;
    for (const state of states)
      recorder.set("leasehold_files_state", [state], status.state === state ? 1 : 0);
    recorder.set("leasehold_files_majority", [], status.majority ? 1 : 0);
    recorder.set("leasehold_files_uploads_open", [], status.uploads);
    recorder.set("leasehold_files_rebuilding_left", [], status.rebuilding?.left ?? 0);
    recorder.set("leasehold_files_primaries", [], status.primariesTotal);
    for (const name of ["leasehold_files_peer_reachable", "leasehold_files_peer_behind"] as const)
      recorder.clear(name);
    for (const { node, reachable, behind } of status.peers) {
      recorder.set("leasehold_files_peer_reachable", [node], reachable ? 1 : 0);
      recorder.set("leasehold_files_peer_behind", [node], behind);
    }
    for (const [event, count] of Object.entries(status.counters))
      recorder.set("leasehold_files_events", [event], count);
    void this.#lookAtDisk(directory);
  }

  /** The result appears in the next reading: a disk that hangs or is gone must not block this one. */
  async #lookAtDisk(directory: string): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      const { bavail, bsize } = await statfs(directory);
      this.#recorder.set("leasehold_files_disk_free", [], bavail * bsize);
    } catch {
      this.#recorder.clear("leasehold_files_disk_free");
    } finally {
      this.#isLooking = false;
    }
  }
}
