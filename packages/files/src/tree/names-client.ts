import { LeaseholdError } from "leasehold/common";
import type {
  Change,
  Entry,
  NameChange,
  NamesOperation,
  NamesResult,
  PutChange,
  Quota,
  Usage,
} from "../names/types.js";
import { isLeaseholdError, notFound } from "../protocol/failures.js";
import type { Router } from "../protocol/router.js";
import { livePrefix } from "../protocol/keys.js";

/** Attempts at a change whose live contents are replaced while they are being sealed. */
const triesMax = 50;

/** A change without the list of live contents that have been sealed for it. */
export type Wish<C extends NameChange = NameChange> = C extends unknown ? Omit<C, "sealed"> : never;

/** Changes and looks up names, from any node. */
export class NamesClient {
  readonly #router: Router;

  constructor(router: Router) {
    this.#router = router;
  }

  ask(operation: NamesOperation, signal?: AbortSignal): Promise<NamesResult> {
    return this.#router.names(operation, signal);
  }

  async lookup(path: string, signal: AbortSignal | undefined): Promise<Entry | undefined> {
    return (await this.look(path, signal)).entry;
  }

  /** What the path names, and the nodes of its content. */
  async look(path: string, signal: AbortSignal | undefined): Promise<Looked> {
    return lookedAt(await this.ask({ kind: "lookup", path }, signal));
  }

  /**
   * @param avoid nodes that cannot be reached
   * @param isStill only if the primary still has the announcement: then no change has named the content since
   * @returns what the path names now, and the nodes that the content should be on
   * @throws LeaseholdError `STORE_FORGOTTEN` with `isStill`
   */
  async announce(
    change: PutChange,
    avoid: readonly string[],
    signal: AbortSignal | undefined,
    isStill = false,
  ): Promise<Looked> {
    return lookedAt(await this.ask({ kind: "begin", change, avoid, isStill }, signal));
  }

  /** Best effort: an announcement that is not withdrawn expires. */
  withdraw(content: string): void {
    this.ask({ kind: "end", content }).catch(() => undefined);
  }

  /**
   * Makes a change. Files written in place that the change moves, shares or removes are sealed first, so that
   * no write to them is acknowledged and then lost. Sealing also checks the version that the change expects.
   */
  async change(wish: Wish, signal: AbortSignal | undefined): Promise<NamesResult> {
    const sealed: string[] = [];
    for (let tries = 0; tries < triesMax; tries += 1) {
      const change = { ...wish, sealed: [...sealed] } as Change;
      const result = await this.ask({ kind: "commit", change }, signal);
      if (result.unsealed === undefined) return result;
      for (const content of result.unsealed) {
        await this.#seal(content, await this.#versionFor(wish, content, signal), signal);
        sealed.push(content);
      }
    }
    throw new LeaseholdError("FILE_CHANGED", "the files are written all the time");
  }

  /**
   * The version that the change expects of this live content, if the content is that of the change's own
   * path.
   */
  async #versionFor(wish: Wish, content: string, signal: AbortSignal | undefined): Promise<string | null> {
    const ifVersion = "ifVersion" in wish ? wish.ifVersion : null;
    if (ifVersion === null) return null;
    const entry = await this.lookup("from" in wish ? wish.from : wish.path, signal);
    return entry?.kind === "file" && entry.content.id === content ? ifVersion : null;
  }

  async #seal(content: string, version: string | null, signal: AbortSignal | undefined): Promise<void> {
    const ifVersion = version === null ? null : stampIn(version, content);
    const seal = { kind: "seal", ifVersion } as const;
    await this.#router.operate(livePrefix + content, seal, undefined, signal).catch((error: unknown) => {
      // The content was removed and collected meanwhile: the change looks up the name again.
      if (!isLeaseholdError(error, "FILE_NOT_FOUND")) throw error;
    });
  }
}

export interface Looked {
  readonly entry: Entry | undefined;
  readonly nodes: readonly string[];
  /** For a folder. */
  readonly usage: Usage | undefined;
  readonly left: Quota | undefined;
}

const lookedAt = ({ entry, nodes = [], usage, left }: NamesResult): Looked => {
  return { entry: entry ?? undefined, nodes, usage, left };
};

/** The version of a file that is written in place: the stamp and the beginning of its content's id. */
export function liveVersion(stamp: string, content: string): string {
  return `${stamp}.${content.slice(0, 8)}`;
}

/** @throws LeaseholdError `FILE_CHANGED` if the version does not belong to this content */
function stampIn(version: string, content: string): string {
  const end = `.${content.slice(0, 8)}`;
  if (version.endsWith(end)) return version.slice(0, -end.length);
  throw new LeaseholdError("FILE_CHANGED", `the file does not have version ${version}`);
}

/** @throws LeaseholdError `FILE_NOT_FOUND`, or `FILE_EXISTS` for a folder */
export function fileIn(entry: Entry | undefined, path: string): Entry & { readonly kind: "file" } {
  if (entry === undefined) throw notFound(path);
  if (entry.kind === "file") return entry;
  throw new LeaseholdError("FILE_EXISTS", `${JSON.stringify(path)} is a folder`);
}
