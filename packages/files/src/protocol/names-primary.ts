import { LeaseholdError, Pauses, readBothClocks, type Lease } from "leasehold/common";
import { Announced } from "../names/announced.js";
import { ChangeLog, type NameEvent } from "../names/change-log.js";
import { type Circumstances, Draft, factBytesMax, HalfMade, partsMax, Unsealed } from "../names/draft.js";
import { noNodes, placementOf, stepTo } from "../names/nodes.js";
import { decodeNames, encodeNames, extraBytes, type NamesRecord } from "../names/records.js";
import { filesBelow, find, folderAbove, NamesState, partsOf, placeOf, shownIn } from "../names/state.js";
import type {
  Change,
  Entry,
  Fact,
  Found,
  NamesOperation,
  NamesResult,
  PlaceChange,
  PutChange,
} from "../names/types.js";
import { leftIn } from "../names/usage.js";
import { forEachOf } from "./each.js";
import { checkPath, checkQuota, TenureOver } from "./failures.js";
import { namesKey } from "./keys.js";
import { noBytes } from "./messages.js";
import type { Outcome, Serving } from "./serving.js";
import { compareVersions, type Stamp, stampOf } from "./records.js";
import type { NodeParts } from "./settings.js";
import { Tenure } from "./tenure.js";

/** The most changes that may wait. */
const waitingMax = 4_096;
/** The most changes in one record, and the size in bytes at which no more are added to a record. */
const changesPerRecord = 256;
const recordBytes = 512 * 1024;
/**
 * The longest record: `recordBytes` and either the longest change or the change log. It is below the limit of
 * a block.
 */
const recordBytesMax = 3.25 * 2 ** 20;
/** Facts in one record of a snapshot. Such a record has at most `recordBytes` and one more fact. */
const factsPerPiece = 1_000;
/** A page of a list ends when its attributes exceed this many bytes. */
const pageBytes = 512 * 1024;
/** A snapshot begins after this many records, as a share of all names: then it costs as much as it saves. */
const recordsPerName = 0.1;
/** The size that most names stay below in a snapshot. */
const bytesPerName = 256;
/** Records that are read concurrently when a tenure begins. */
const recordsAtOnce = 16;
/** When a tenure begins, others get the event loop at least this often, ms, between parts of the work. */
const turnMs = 10;
export const listedMax = 1_000;

interface Waiting {
  readonly change: Change;
  readonly left: () => number;
  readonly resolve: (result: NamesResult) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * The primary of all names, for one tenure. It keeps the names in memory and answers reads under its lease.
 * Changes that wait at the same time go into one record of the journal, which takes effect when a majority
 * has it. Replay starts at the header's floor. A snapshot is written between changes, as facts that are true
 * at their position in the journal; then the floor moves to the snapshot's first record.
 */
export class NamesPrimary implements Serving {
  readonly tenure: Tenure;
  readonly #parts: NodeParts;
  readonly #state = new NamesState();
  readonly #announced: Announced;
  /** Contents being placed on another node, which must not collect them meanwhile. */
  readonly #moves: Announced;
  readonly #log: ChangeLog;
  readonly #pauses: Pauses;
  /** Ends the waits for the next change. */
  #changed = (): void => undefined;
  #nextChange: Promise<void> | undefined;
  #tickets = 0;
  readonly #waiting: Waiting[] = [];
  #isDraining = false;
  /** When the last pause of {@link begin} ended. */
  #turnMs = -Infinity;
  #nextRecord = 0;
  /** Records since the last snapshot began. */
  #records = 0;
  #versions = 0;

  constructor(parts: NodeParts, lease: Lease) {
    this.#parts = parts;
    this.tenure = new Tenure(parts, lease, namesKey);
    const nowMs = (): number => parts.world.clock.monotonicMs();
    this.#log = new ChangeLog(parts.settings.keptChanges);
    this.#pauses = new Pauses(parts.world.timers);
    this.#announced = new Announced(nowMs, parts.settings.announcedMs);
    this.#moves = new Announced(nowMs, parts.settings.announcedMs);
  }

  /** Everything needs the names, so their primary never idles out. */
  get isIdle(): boolean {
    return false;
  }

  async begin(): Promise<void> {
    const { tenure } = this;
    await tenure.begin();
    const { blockSize } = this.#parts.settings;
    if (tenure.header?.exists !== true)
      await tenure.setHeader({ exists: true, size: 0, blockSize }, tenure.operationTime());
    const { floor } = tenure.header!;
    const tags = await this.#parts.replica.tags(namesKey);
    const indices = [...tags]
      .filter(([, tag]) => tag !== undefined && compareVersions(stampOf(tag), floor) >= 0)
      .map(([index]) => index)
      .sort((one, other) => one - other);
    for (let at = 0; at < indices.length; at += recordsAtOnce)
      await this.#replay(indices.slice(at, at + recordsAtOnce));
    for (const _ of this.#state.endReplay()) await this.#endTurn();
    this.#records = indices.length;
    this.#nextRecord = (indices.at(-1) ?? -1) + 1;
    const isNewLog = this.#log.begin(this.tenure.epoch.toString(36));
    if (this.#state.list.version === 0) await this.#found();
    // The next primary continues the log.
    else if (isNewLog) await this.#write({ nextId: this.#state.nextId, facts: [] }, []);
  }

  /** The cluster's initial nodes form the first list. */
  async #found(): Promise<void> {
    const nodes = this.#parts.founders.map((node) => ({ ...node, zone: "", state: "serving" as const }));
    const list = { ...noNodes, version: 1, nodes };
    await this.#write({ nextId: this.#state.nextId, facts: [], list }, []);
  }

  /** Reads a few records at a time, so that memory is bounded. */
  async #replay(indices: readonly number[]): Promise<void> {
    const records: Uint8Array[] = [];
    await forEachOf(indices.entries(), recordsAtOnce, async ([at, index]) => {
      records[at] = (await this.tenure.copies.readHere(index))?.bytes ?? noBytes;
    });
    for (const bytes of records) {
      const { nextId, facts, placements, list, log } = decodeNames(bytes);
      await this.#endTurn();
      this.#log.add(log);
      this.#state.replay(facts, placements, list);
      this.#state.nextId = Math.max(this.#state.nextId, nextId);
      await this.#endTurn();
    }
  }

  /** Pauses after a while so that the lease can be renewed. Once it is lost, the rest would be in vain. */
  async #endTurn(): Promise<void> {
    const { clock } = this.#parts.world;
    if (clock.monotonicMs() - this.#turnMs < turnMs) return;
    await this.#pauses.pause(0);
    if (this.tenure.isOver)
      throw new LeaseholdError("LEASE_LOST", "the lease was lost while names were read");
    this.#turnMs = clock.monotonicMs();
  }

  async run(operation: NamesOperation, _bytes: Uint8Array, timeoutMs: number): Promise<Outcome<NamesResult>> {
    this.tenure.use();
    checkOperation(operation);
    try {
      if (operation.kind === "news") await this.#news(operation);
      const result =
        operation.kind === "commit"
          ? await this.#commit(operation.change, timeoutMs)
          : operation.kind === "complete"
            ? await this.#complete(operation.lacks)
            : this.#read(operation);
      if (result.isDone !== true) this.tenure.assertHeld();
      return { result, bytes: noBytes };
    } catch (error) {
      // A refusal is an answer too, so it must be true.
      if (error instanceof LeaseholdError && isRefusal(error)) this.tenure.assertHeld();
      throw error;
    }
  }

  #read(operation: Exclude<NamesOperation, { kind: "commit" | "complete" }>): NamesResult {
    if (this.tenure.isOver) throw new TenureOver();
    switch (operation.kind) {
      case "lookup":
        return this.#lookup(operation.path);
      case "files":
        return pageOf(
          filesBelow(this.#state, operation.prefix, operation.after),
          operation.limit,
          (each) => each.path,
        );
      case "children":
        return this.#children(operation);
      case "begin": {
        const { change, isStill = false } = operation;
        if (isStill) this.#announcedNodes(change);
        const entry = find(this.#state, change.path)?.entry ?? null;
        this.#check(change);
        const { list } = this.#state;
        const { id, isLive } = change.content;
        const copies = this.#state.copiesIn(folderAbove(this.#state, change.path));
        const nodes = isLive ? [] : placementOf(list, copies, id, operation.avoid);
        if (nodes.length === 0 && !isLive)
          throw new LeaseholdError("NO_QUORUM", "no node takes contents: all are draining, or have no disk");
        this.#announced.add(id, nodes);
        return { entry, nodes };
      }
      case "end":
        this.#announced.remove(operation.content);
        return {};
      case "unnamed":
        return {
          unnamed: operation.contents.filter(
            (id) => !this.#isToBeAt(operation.node, id) && !this.#announced.has(id),
          ),
        };
      case "contents":
        return this.#contents(operation);
      case "placement":
        return { nodes: this.#state.placementOf(operation.content) };
      case "list":
        return this.#list();
      case "changes":
        return this.#changes(operation);
      case "news": {
        const { feed } = this;
        const page =
          operation.feed === feed ? this.#log.after(operation.after, "", operation.limit) : undefined;
        return { feed, last: this.#log.last, ...(page && { page }) };
      }
    }
  }

  /** @throws LeaseholdError `CURSOR_GONE` */
  #changes({ folder, after, feed: given, limit }: NamesOperation & { kind: "changes" }): NamesResult {
    const { feed } = this;
    if (after === null) return { feed, page: { events: [], last: this.#log.last, isMore: false } };
    const page = given === feed ? this.#log.after(after, folder, limit) : undefined;
    if (page !== undefined) return { feed, page };
    throw new LeaseholdError(
      "CURSOR_GONE",
      given === feed ? "not all changes after the cursor are kept" : "the cursor is of other changes",
    );
  }

  /** The name of the log. No other cluster has the same initial disks. */
  get feed(): string {
    const [disk = ""] = this.#parts.founders.map((founder) => founder.disk).toSorted();
    return `${disk.replaceAll("-", "").slice(0, 8)}.${this.#log.birth}`;
  }

  /** Waits for a change after that one, for less time than the asking node waits for the answer. */
  async #news({ after, feed }: NamesOperation & { kind: "news" }): Promise<void> {
    if (after !== this.#log.last || feed !== this.feed || this.tenure.isOver) return;
    this.#nextChange ??= new Promise((resolve) => (this.#changed = resolve));
    await this.#pauses.within(this.#nextChange, this.#parts.settings.answerTimeoutMs / 2);
  }

  #contents({ node, after, limit }: NamesOperation & { kind: "contents" }): NamesResult {
    const state = this.#state;
    return state.contents(node, after, limit, (name, content, nodes) => {
      const wanted = placementOf(state.list, state.copiesOf(name, content), content);
      const step = stepTo(nodes, wanted);
      if (step?.taker !== node) return undefined;
      const ticket = `${this.tenure.epoch.toString(36)}.${(this.#tickets += 1)}`;
      this.#moves.add(content, [node, ticket]);
      return { nodes: step.nodes, ticket };
    });
  }

  /** Whether the names place the content on that node (or, without one, on any node), or are about to. */
  #isToBeAt(node: string | undefined, content: string): boolean {
    if (!this.#state.isNamed(content)) return false;
    if (this.#moves.nodesOf(content)?.[0] === node) return true;
    const nodes = this.#state.placementOf(content);
    return node === undefined || nodes.length === 0 || nodes.includes(node);
  }

  #list(): NamesResult {
    const { list } = this.#state;
    const counts = Object.fromEntries(list.nodes.map(({ id }) => [id, this.#state.placedOn(id)]));
    return { list, counts };
  }

  #lookup(path: string): NamesResult {
    const name = find(this.#state, path);
    if (name === undefined) return { entry: null };
    const { entry, id } = name;
    if (entry.kind === "folder")
      return { entry, usage: this.#state.usage.of(id), left: leftIn(this.#state, id) };
    const all = partsOf(entry.content).flatMap((part) => this.#state.placementOf(part.id));
    return { entry, nodes: [...new Set(all)] };
  }

  async #complete(lacks: string): Promise<NamesResult> {
    await this.tenure.completeCopies(lacks);
    return {};
  }

  #children({
    path,
    prefix: begin = "",
    after,
    limit,
  }: NamesOperation & { readonly kind: "children" }): NamesResult {
    const folder = find(this.#state, path);
    if (folder?.entry.kind !== "folder") return { entry: folder?.entry ?? null };
    const prefix = path === "" ? "" : `${path}/`;
    const state = this.#state;
    const found = function* (): Generator<Found & { readonly place: string }> {
      for (const child of shownIn(state, folder.id, after > begin ? after : begin)) {
        const place = placeOf(child).slice(`${folder.id} `.length);
        if (!place.startsWith(begin)) return;
        const usage = child.entry.kind === "folder" ? { usage: state.usage.of(child.id) } : {};
        if (place > after) yield { path: prefix + child.name, entry: child.entry, place, ...usage };
      }
    };
    return { entry: folder.entry, ...pageOf(found(), limit, ({ place }) => place) };
  }

  /** Throws the error with which a change would now be refused. */
  #check(change: Change): void {
    try {
      new Draft(this.#state).make(
        change,
        this.#circumstances(() => []),
      );
    } catch (error) {
      if (!(error instanceof Unsealed)) throw error;
    }
  }

  #commit(change: Change, timeoutMs: number): Promise<NamesResult> {
    if (this.#waiting.length >= waitingMax)
      return Promise.reject(new LeaseholdError("OVERLOADED", "too many changes of names wait"));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ change, left: this.tenure.operationTime(timeoutMs), resolve, reject });
      void this.#drain();
    });
  }

  async #drain(): Promise<void> {
    if (this.#isDraining) return;
    this.#isDraining = true;
    // Collects the changes of this turn of the event loop in one record.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      await this.#writeBatch(this.#waiting.splice(0, changesPerRecord));
      if (await this.#mustSnapshot().catch(() => false)) await this.#snapshot().catch(() => undefined);
    }
    this.#isDraining = false;
  }

  /**
   * Decides each change of the batch after those before it, and answers all of them when a majority has the
   * record.
   */
  async #writeBatch(batch: Waiting[]): Promise<void> {
    const draft = new Draft(this.#state);
    const named = new Set<string>();
    const answers: (() => void)[] = [];
    let decided = 0;
    try {
      if (this.tenure.isOver) throw new TenureOver();
      const hasRoom = await this.#parts.replica.hasRoom(recordBytesMax);
      while (decided < batch.length && draft.bytes < recordBytes)
        answers.push(this.#decide(draft, named, batch[decided++]!, hasRoom));
      for (const waiting of batch.splice(decided).toReversed()) this.#waiting.unshift(waiting);
      if (!draft.isEmpty) await this.#write(draft.record(), draft.events);
      // Until here the announcement protects the content from collection; from here on its name does.
      for (const content of named) for (const each of [this.#announced, this.#moves]) each.remove(content);
    } catch (error) {
      for (const { reject } of batch) reject(error);
      return;
    }
    for (const answer of answers) answer();
  }

  /**
   * @param named contents that this batch has named or placed: a late duplicate must name none of them again.
   */
  #decide(
    draft: Draft,
    named: Set<string>,
    { change, left, resolve, reject }: Waiting,
    hasRoom: boolean,
  ): () => void {
    try {
      if (left() === 0) throw new LeaseholdError("NO_QUORUM", "timed out: other changes of names came first");
      if (!hasRoom && change.kind !== "remove" && change.kind !== "place" && change.kind !== "nodes")
        throw new LeaseholdError("STORE_FULL", `node ${this.#parts.node} has no room`);
      const mayName = (put: PutChange): readonly string[] => this.#announcedNodes(put, named);
      const made = draft.make(change, this.#circumstances(mayName));
      if (change.kind === "put") named.add(change.content.id);
      if (change.kind === "place") named.add(change.content);
      return () => resolve({ ...made, isDone: !draft.isEmpty });
    } catch (error) {
      if (error instanceof HalfMade) throw error;
      if (error instanceof Unsealed) return () => resolve({ unsealed: error.contents });
      return () => reject(error);
    }
  }

  /** @throws LeaseholdError `STORE_FORGOTTEN`: not announced to this primary, or named by a change. */
  #announcedNodes({ path, content: { id } }: PutChange, named?: ReadonlySet<string>): readonly string[] {
    const nodes = this.#announced.nodesOf(id);
    if (nodes !== undefined && named?.has(id) !== true) return nodes;
    throw new LeaseholdError("STORE_FORGOTTEN", `the content of ${path} was not announced to this primary`);
  }

  #circumstances(mayName: Circumstances["mayName"]): Circumstances {
    const epoch = this.tenure.epoch.toString(36);
    const version = (): string => `${epoch}.${(this.#versions += 1).toString(36)}`;
    const nowMs = Math.max(0, Math.floor(readBothClocks(this.#parts.world.clock).wallMs));
    const mayPlace = ({ content, before, nodes, ticket }: PlaceChange): void => {
      const [taker, given] = this.#moves.nodesOf(content) ?? [];
      const isKnown = nodes.every((node) => before.includes(node) || node === taker);
      if (given !== ticket || !isKnown)
        throw new LeaseholdError("STORE_FORGOTTEN", `content ${content} may have been collected meanwhile`);
    };
    return { version, nowMs, mayName, mayPlace, keepers: this.#parts.nodes };
  }

  async #write(record: NamesRecord, events: readonly NameEvent[]): Promise<void> {
    const log = this.#log.part(events);
    const bytes = encodeNames({ ...record, log });
    if (bytes.length > recordBytesMax) throw new Error(`a record of names has ${bytes.length} bytes`);
    const { tenure } = this;
    await tenure.setBlock(this.#nextRecord, tenure.nextStamp(0), bytes, false, tenure.operationTime());
    this.#nextRecord += 1;
    this.#records += 1;
    this.#state.apply(record.facts, record.placements, record.list);
    this.#log.add(log);
    if (events.length === 0) return;
    this.#nextChange = undefined;
    this.#changed();
  }

  /** Not on a disk that the change would fill: removals need the remaining space. */
  async #mustSnapshot(): Promise<boolean> {
    const { size, extraBytes: more } = this.#state;
    const { recordsMin } = this.#parts.settings;
    if (this.tenure.isOver || this.#records <= Math.max(recordsMin, size * recordsPerName)) return false;
    return this.#parts.replica.hasRoom(recordBytesMax + size * bytesPerName + more);
  }

  /** Changes that arrive meanwhile are written between the snapshot's records. */
  async #snapshot(): Promise<void> {
    this.#records = 0;
    const { tenure } = this;
    const names = this.#state.all()[Symbol.iterator]();
    const floor = await this.#writePiece({ nextId: this.#state.nextId, facts: [], log: this.#log.whole() });
    for (let isLast = false; !isLast;) {
      const facts: Fact[] = [];
      for (let size = 0; facts.length < factsPerPiece && size < recordBytes && !isLast;) {
        const next = names.next();
        if (next.done === true) isLast = true;
        else if (next.value.parent >= 0) {
          facts.push([next.value.id, next.value]);
          size += factBytesMax(next.value.name, next.value.entry);
        }
      }
      await this.#writePiece({ ...this.#state.recordOf(facts), log: this.#log.part([]) });
      if (this.#waiting.length > 0) await this.#writeBatch(this.#waiting.splice(0, changesPerRecord));
      if (tenure.isOver) throw new TenureOver();
    }
    const { blockSize } = this.#parts.settings;
    await tenure.setHeader({ exists: true, size: 0, blockSize, floor }, tenure.operationTime());
  }

  /** Writes a record of a snapshot. */
  async #writePiece(record: NamesRecord): Promise<Stamp> {
    const { tenure } = this;
    const stamp = tenure.nextStamp(0);
    await tenure.setBlock(this.#nextRecord, stamp, encodeNames(record), false, tenure.operationTime());
    this.#nextRecord += 1;
    return stamp;
  }
}

/** Lists leave out the parts: each file may have thousands. */
function withoutParts(entry: Entry): Entry {
  if (entry.kind === "folder" || entry.content.parts === undefined) return entry;
  const { parts: _, ...content } = entry.content;
  return { ...entry, content };
}

function pageOf<T extends Found>(all: Iterable<T>, limit: number, cursor: (each: T) => string): NamesResult {
  const found: Found[] = [];
  let last: T | undefined;
  let bytes = 0;
  for (const each of all) {
    if (found.length === limit || bytes > pageBytes) return { found, next: cursor(last!) };
    const entry = withoutParts(each.entry);
    found.push({ path: each.path, entry, ...(each.usage && { usage: each.usage }) });
    bytes += extraBytes(entry);
    last = each;
  }
  return { found };
}

const refusals: ReadonlySet<string> = new Set([
  "FILE_NOT_FOUND",
  "FILE_EXISTS",
  "FILE_CHANGED",
  "QUOTA_EXCEEDED",
  "CURSOR_GONE",
]);
const isRefusal = ({ code }: LeaseholdError): boolean => refusals.has(code);

/** @throws LeaseholdError `INVALID_PATH`, `INVALID_RANGE` for requests that another node must not send. */
function checkOperation(operation: NamesOperation): void {
  if ("limit" in operation && !(operation.limit >= 1 && operation.limit <= listedMax))
    throw new LeaseholdError("INVALID_RANGE", `limit is 1 to ${listedMax}`);
  if (operation.kind === "unnamed" && operation.contents.length > listedMax)
    throw new LeaseholdError("INVALID_RANGE", `at most ${listedMax} contents are asked for`);
  if (operation.kind === "commit" && operation.change.kind === "put") {
    const { files = [] } = operation.change.compose ?? {};
    if (files.length > partsMax)
      throw new LeaseholdError("INVALID_RANGE", `a file is made of at most ${partsMax} others`);
  }
  if (operation.kind === "begin" || operation.kind === "commit") {
    const { change } = operation;
    if (change.kind === "nodes" || change.kind === "place") return;
    for (const path of "to" in change ? [change.from, change.to] : [change.path]) checkPath(path);
    if (change.kind === "quota" && change.quota !== null) checkQuota(change.quota);
  }
}
