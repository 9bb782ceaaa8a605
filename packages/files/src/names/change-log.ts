/**
 * The last changes of names in order, for followers. A change of names appends its events as part of its own
 * record in the journal, and a snapshot begins with all events kept. So each primary has the same events with
 * the same numbers.
 */
import { isInSnapshots } from "./snapshots.js";
import { uploadsFolder } from "./uploads-folder.js";

/** What happened to a name. An event about a folder covers everything in it. */
export type NameEventKind = "created" | "replaced" | "renamed" | "removed" | "touched";

export interface NameEvent {
  readonly what: NameEventKind;
  readonly path: string;
  readonly isFolder: boolean;
  /** An empty folder was created. */
  readonly isEmpty?: boolean | undefined;
  /** The version after the change, for a file whose content never changes. */
  readonly version?: string | undefined;
  readonly size?: number | undefined;
  /** The former path of a renamed file or folder. */
  readonly from?: string | undefined;
  /** A rename replaced something that was at the path before. */
  readonly existed?: boolean | undefined;
}

/** Events with ascending numbers, as they are in a record. */
export interface LogPart {
  /** The number of the first event or, if there are none, of the next. */
  readonly first: number;
  readonly events: readonly NameEvent[];
  /** Identifies the log: no other log has this id. Empty: the log has not begun. */
  readonly birth: string;
}

export interface LogPage {
  readonly events: readonly (readonly [number: number, event: NameEvent])[];
  /** The number of the last change read. */
  readonly last: number;
  readonly isMore: boolean;
}

/**
 * The size of the changes kept, as measured by {@link sizeOf}: at least a third of their size in a record.
 */
const keptSizeMax = 2 ** 20;
/** At least this many of the last changes are kept, however long their paths are. */
export const keptAtLeast = 1_000;

export class ChangeLog {
  #birth = "";
  #next = 1;
  #kept: NameEvent[] = [];
  #size = 0;
  readonly #keptMax: number;

  /** @param most the number of changes to keep */
  constructor(most: number) {
    this.#keptMax = most;
  }

  /** The number of the last change; 0 if there is none. */
  get last(): number {
    return this.#next - 1;
  }

  get birth(): string {
    return this.#birth;
  }

  /**
   * Begins a log if there is none.
   * @param birth the id of the log; no other log has it
   * @returns whether there was none
   */
  begin(birth: string): boolean {
    if (this.#birth !== "") return false;
    this.#beginAt(1, birth);
    return true;
  }

  /** Gives these changes the next numbers. */
  part(events: readonly NameEvent[]): LogPart {
    return { first: this.#next, events, birth: this.#birth };
  }

  /** All changes kept. */
  whole(): LogPart {
    return { first: this.#next - this.#kept.length, events: this.#kept.slice(), birth: this.#birth };
  }

  /**
   * Adds the changes of a record to those of the records before it.
   * @param part undefined: the record is from a version that recorded no changes, so a new log begins after
   *   it
   */
  add(part: LogPart | undefined): void {
    if (part === undefined) {
      this.#beginAt(1, "");
      return;
    }
    if (part.first > this.#next || part.birth !== this.#birth) this.#beginAt(part.first, part.birth);
    for (const event of part.events.slice(this.#next - part.first)) {
      this.#kept.push(event);
      this.#size += sizeOf(event);
      this.#next += 1;
    }
    let gone = Math.max(0, this.#kept.length - this.#keptMax);
    for (const event of this.#kept.slice(0, gone)) this.#size -= sizeOf(event);
    while (this.#size > keptSizeMax) this.#size -= sizeOf(this.#kept[gone++]!);
    if (gone > 0) this.#kept.splice(0, gone);
  }

  /**
   * The changes after that number, at a folder and in it.
   * @returns undefined if some of them are no longer kept, or if the number was never given
   */
  after(number: number, folder: string, limit: number): LogPage | undefined {
    const first = this.#next - this.#kept.length;
    if (!Number.isSafeInteger(number) || number < first - 1 || number > this.last) return undefined;
    const events: (readonly [number, NameEvent])[] = [];
    for (let at = number + 1; at < this.#next; at += 1) {
      const event = seenFrom(this.#kept[at - first]!, folder);
      if (event === undefined) continue;
      if (events.length === limit) return { events, last: at - 1, isMore: true };
      events.push([at, event]);
    }
    return { events, last: this.last, isMore: false };
  }

  #beginAt(number: number, birth: string): void {
    this.#birth = birth;
    this.#next = number;
    this.#kept = [];
    this.#size = 0;
  }
}

/** The change as a follower of that folder sees it; undefined if it doesn't concern the folder. */
export function seenFrom(event: NameEvent, folder: string): NameEvent | undefined {
  const { what, path, from, isFolder, existed = false, version, size } = event;
  if (what !== "renamed" || from === undefined) return concerning(event, folder);
  const [left, came] = [isWithin(from, folder), isWithin(path, folder)];
  if (left && came) return event;
  const gone = concerning({ what: "removed", path: from, isFolder }, folder);
  if (gone !== undefined) return gone;
  return concerning({ what: existed ? "replaced" : "created", path, isFolder, version, size }, folder);
}

/**
 * Names that no list shows aren't reported: snapshots and the parts of uploads. Undefined if nothing is left.
 */
export function withoutHidden(event: NameEvent): NameEvent | undefined {
  const { path, from, isFolder, existed = false, version, size } = event;
  if (from === undefined) return isHidden(path) ? undefined : event;
  if (isHidden(path)) return isHidden(from) ? undefined : { what: "removed", path: from, isFolder };
  return isHidden(from) ? { what: existed ? "replaced" : "created", path, isFolder, version, size } : event;
}

function isHidden(path: string): boolean {
  return path === uploadsFolder || path.startsWith(`${uploadsFolder}/`) || isInSnapshots(path);
}

/** The followed folder may appear or disappear together with a folder above it. */
function concerning(event: NameEvent, folder: string): NameEvent | undefined {
  const { what, path, isFolder, isEmpty = false } = event;
  if (isWithin(path, folder)) return event;
  if (what === "touched" || isEmpty || !isWithin(folder, path)) return undefined;
  if (isFolder) return { what, path: folder, isFolder };
  return what === "replaced" ? { what: "removed", path: folder, isFolder: true } : undefined;
}

function isWithin(path: string, folder: string): boolean {
  return folder === "" || path === folder || path.startsWith(`${folder}/`);
}

/** The approximate length of a change in a record. */
function sizeOf({ path, from = "" }: NameEvent): number {
  return path.length + from.length + 60;
}

/** The upper bound of the length of a change in a record. */
export function eventBytesMax(event: NameEvent): number {
  return 3 * sizeOf(event);
}
