import { sameBytes } from "../../delta/record/envelope.js";
import type { StoreAnswer, StoreTraits } from "../../delta/store.js";
import { LeaseholdError } from "../../lease/errors.js";
import type { ReplaceRequest, AtomicMedium } from "../common/atomic-store.js";
import { kindTraits } from "../common/kind-traits.js";
import type { S3Address } from "./address.js";
import { S3Refusal, type S3Client } from "./client.js";
import { s3Failure } from "./failure.js";
import { keyOf, parseKeyPage, registerOf } from "./keys.js";
import { isRefusal, type S3Object, type S3Objects } from "./objects.js";
import { append } from "../../common/lists.js";

/** The maximum number of cached entity tags. An object without one costs another request. */
const rememberedMax = 10_000;

/**
 * The maximum number of retries of a write that was refused although nothing has changed: another write was
 * in flight and failed.
 */
const triesMax = 4;

/** Keys in a page of a list: the maximum of S3. */
const pageKeys = 1_000;

/** The maximum number of pages of a list; a server's pages need not be full. */
const pagesMax = 1_000;

/** The number of a list's objects that are read concurrently. */
const readsAtOnce = 16;

/**
 * A bucket, or the objects below one of its prefixes, as a store. An object is a cell; compare-and-set is a
 * conditional write with the entity tag of the expected content.
 *
 * The marker is a separate object and cannot be read in the same step. It is read after any answer that a
 * cell does not exist, as this is the only answer that an emptied store gives. A cell with the expected
 * content has not been lost.
 */
export class S3Medium implements AtomicMedium {
  readonly traits: StoreTraits;
  readonly #client: S3Client;
  readonly #objects: S3Objects;
  readonly #prefix: string;
  readonly #remembered = new Map<string, S3Object>();
  #marker: string | undefined;

  constructor(address: S3Address, client: S3Client, objects: S3Objects) {
    this.#client = client;
    this.#objects = objects;
    this.#prefix = address.prefix;
    this.traits = { name: address.name, durable: true, ...kindTraits.s3 };
  }

  async read(register: string): Promise<StoreAnswer> {
    const object = await this.#get(register);
    return { kind: "cells", id: await this.#readMarker(), cells: cellsOf(object) };
  }

  async replace(request: ReplaceRequest): Promise<StoreAnswer> {
    const { register, id, expected, next } = request;
    if (id !== (this.#marker ?? (await this.#readMarker())) && id !== (await this.#readMarker()))
      return this.#conflict(register);
    for (let tries = 0; tries < triesMax; tries += 1) {
      const object = expected === undefined ? undefined : await this.#find(register, expected);
      if (expected !== undefined && object === undefined) return this.#conflict(register);
      const outcome = await this.#put(register, object, next);
      // The object may have been created in a store that was emptied, which the new marker reveals.
      if (outcome === "written")
        return { kind: "written", id: expected === undefined ? await this.#readMarker() : id };
      if (outcome === "conflict") return this.#conflict(register);
    }
    throw new LeaseholdError(
      "STORE_UNAVAILABLE",
      `${this.traits.name}: a write was refused ${triesMax} times although nothing had changed`,
    );
  }

  async list(prefix: string, registersMax: number): Promise<StoreAnswer> {
    const registers = new Map<string, readonly Uint8Array[]>();
    let found: string[] = [];
    let next: string | undefined;
    for (let page = 1; ; page += 1) {
      const left = registersMax - found.length;
      const keys = await this.#page(prefix, Math.min(left, pageKeys), next);
      append(found, keys.registers.slice(0, left));
      next = keys.next;
      if (next === undefined || found.length >= registersMax || page === pagesMax) break;
    }
    while (found.length > 0) {
      const [some, rest] = [found.slice(0, readsAtOnce), found.slice(readsAtOnce)];
      const objects = await Promise.all(some.map((register) => this.#get(register)));
      for (const [index, object] of objects.entries())
        if (object !== undefined) registers.set(some[index]!, cellsOf(object));
      found = rest;
    }
    return { kind: "registers", id: await this.#readMarker(), registers };
  }

  failure(error: unknown): LeaseholdError {
    return s3Failure(this.traits.name, error);
  }

  close(): Promise<void> {
    this.#client.close();
    return Promise.resolve();
  }

  /**
   * Makes one conditional write and returns its outcome. A refusal is checked, because a proxy may have
   * repeated a write whose first attempt took effect, and because some servers (radosgw) answer most losers
   * of a race with 500.
   */
  async #put(
    register: string,
    before: S3Object | undefined,
    next: Uint8Array,
  ): Promise<"written" | "conflict" | "refused"> {
    const condition = before === undefined ? ({ absent: true } as const) : { etag: before.etag };
    const answer = await this.#objects.put(keyOf(register), next, condition);
    if (answer.ok) {
      if (answer.etag === undefined) this.#remembered.delete(register);
      else this.#remember(register, { etag: answer.etag, content: next });
      return "written";
    }
    if (!isRefusal(answer) && answer.status < 500) throw new S3Refusal(answer);
    const now = await this.#get(register);
    if (now !== undefined && sameBytes(now.content, next)) return "written";
    const isUnchanged =
      before === undefined ? now === undefined : now !== undefined && sameBytes(now.content, before.content);
    if (!isUnchanged) return "conflict";
    // The write may still take effect.
    if (answer.status >= 500) throw new S3Refusal(answer);
    return "refused";
  }

  /** The object if it has this content. */
  async #find(register: string, content: Uint8Array): Promise<S3Object | undefined> {
    const remembered = this.#remembered.get(register);
    const object =
      remembered !== undefined && sameBytes(remembered.content, content)
        ? remembered
        : await this.#get(register);
    return object !== undefined && sameBytes(object.content, content) ? object : undefined;
  }

  async #conflict(register: string): Promise<StoreAnswer> {
    const seen = await this.read(register);
    return seen.kind === "cells" ? { ...seen, kind: "conflict" } : seen;
  }

  async #get(register: string): Promise<S3Object | undefined> {
    const object = await this.#objects.get(keyOf(register));
    if (object === undefined) this.#remembered.delete(register);
    else this.#remember(register, object);
    return object;
  }

  #remember(register: string, object: S3Object): void {
    this.#remembered.delete(register);
    this.#remembered.set(register, object);
    if (this.#remembered.size <= rememberedMax) return;
    const [oldest] = this.#remembered.keys();
    this.#remembered.delete(oldest!);
  }

  async #readMarker(): Promise<string> {
    this.#marker = await this.#objects.marker();
    return this.#marker;
  }

  async #page(
    prefix: string,
    keysMax: number,
    from: string | undefined,
  ): Promise<{ registers: readonly string[]; next: string | undefined }> {
    const page = parseKeyPage(
      await this.#objects.list({
        prefix: this.#prefix + keyOf(prefix),
        "max-keys": String(keysMax),
        ...(from !== undefined && { "continuation-token": from }),
      }),
    );
    const registers = page.keys.map((key) => registerOf(key.slice(this.#prefix.length)));
    return { registers: registers.filter((register) => register !== undefined), next: page.next };
  }
}

function cellsOf(object: S3Object | undefined): Uint8Array[] {
  return object === undefined ? [] : [object.content];
}
