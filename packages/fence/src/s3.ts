import { randomUUID } from "node:crypto";
import { FenceError, stale } from "./errors.js";
import type { Fence } from "./fence.js";
import { checkToken, parseToken } from "./token.js";

/** The part of `S3` of `@aws-sdk/client-s3` that is used. */
export interface S3Client {
  getObject(input: S3Place): Promise<{
    readonly Body?: { transformToByteArray(): Promise<Uint8Array> } | undefined;
    readonly ETag?: string | undefined;
    readonly ContentType?: string | undefined;
  }>;
  putObject(
    input: S3Place & {
      Body: string | Uint8Array;
      ContentType?: string;
      IfMatch?: string;
      IfNoneMatch?: string;
    },
  ): Promise<unknown>;
  deleteObject(input: S3Place): Promise<unknown>;
}

export interface S3Place {
  Bucket: string;
  Key: string;
}

export interface S3Content {
  readonly body: string | Uint8Array;
  readonly contentType?: string | undefined;
}

/**
 * The content of the object at the fence's key. No two versions are equal: they differ in the object or the
 * token.
 */
interface Pointer {
  readonly token: bigint;
  /** The key of the content's object; undefined before the first write. */
  readonly object?: string | undefined;
}

interface Condition {
  IfMatch?: string;
  IfNoneMatch?: string;
}

/**
 * Concurrent writers may come between a read and a write. Each failed attempt means that another succeeded.
 */
const triesMax = 50;

/**
 * Content in S3, written with conditional writes. A pointer at `key` has the greatest token and the key of
 * the content, which is a separate object. A write stores its content in a new object and then moves the
 * pointer, on condition that the pointer is still the one that was checked. A holder that wakes up late
 * therefore cannot move the pointer.
 *
 * The content cannot be at `key` itself with the token in its metadata: a condition compares the ETag, which
 * most servers compute from the content alone, so a write of equal content would go unnoticed.
 *
 * Requirement: a consistent server that honours `If-Match` and `If-None-Match` on writes, such as Amazon S3
 * or Ceph; {@link setUp} checks this. A writer that dies before it moves the pointer leaves its object,
 * `KEY.TOKEN.UUID`.
 */
export class S3Fence implements Fence<S3Content> {
  readonly #client: S3Client;
  readonly #bucket: string;
  readonly #key: string;
  /**
   * Formats a tag for `If-Match`. By default the tag is as the server returned it; some versions of Ceph want
   * it without quotes.
   */
  #form: (tag: string) => string = (tag) => tag;

  constructor(client: S3Client, { bucket, key }: { readonly bucket: string; readonly key: string }) {
    this.#client = client;
    this.#bucket = bucket;
    this.#key = key;
  }

  /**
   * Checks with a probe object that the server refuses failed conditions, and finds out which form of tags it
   * accepts. Call it once when a program starts.
   *
   * @throws FenceError `RESOURCE_UNFIT`
   */
  async setUp(): Promise<void> {
    const key = `${this.#key}.probe.${randomUUID()}`;
    try {
      await this.#put(key, { body: "1" });
      await this.#mustRefuse(key, { IfNoneMatch: "*" });
      const { ETag = "" } = await this.#client.getObject(this.#at(key));
      const forms = [(tag: string) => tag, withoutQuotes];
      for (const form of forms) {
        this.#form = form;
        if (await this.#putIf(key, "2", { IfMatch: form(ETag) })) break;
        if (form === forms.at(-1))
          throw new FenceError("RESOURCE_UNFIT", `${this.#bucket} refuses a write with the tag that it gave`);
      }
      // By now this is the tag of the previous content.
      await this.#mustRefuse(key, { IfMatch: this.#form(ETag) });
    } finally {
      await this.#delete(key);
    }
  }

  /**
   * @throws FenceError `TOKEN_STALE`; `TOKEN_INVALID`; the client's errors, after which the write may or may
   *   not have happened
   */
  async write(token: bigint, content: S3Content): Promise<void> {
    checkToken(token);
    let object: string | undefined;
    try {
      await this.#move(token, async () => {
        if (object === undefined) {
          object = `${this.#key}.${token}.${randomUUID()}`;
          await this.#put(object, content);
        }
        return object;
      });
    } catch (error) {
      if (object !== undefined && error instanceof FenceError) await this.#delete(object);
      throw error;
    }
  }

  async claim(token: bigint): Promise<void> {
    checkToken(token);
    await this.#move(token, async (before) => before);
  }

  async greatest(): Promise<bigint> {
    return (await this.#look()).pointer.token;
  }

  /** Returns the content and the greatest token; undefined before the first write. */
  async read(): Promise<{ token: bigint; body: Uint8Array; contentType?: string | undefined } | undefined> {
    for (let tries = 0; ; tries += 1) {
      const { token, object } = (await this.#look()).pointer;
      if (object === undefined) return undefined;
      try {
        const { Body, ContentType } = await this.#client.getObject(this.#at(object));
        return { token, body: await Body!.transformToByteArray(), contentType: ContentType };
      } catch (error) {
        // The pointer was moved after it was read, and this content removed.
        if (statusOf(error) !== 404 || tries >= triesMax) throw error;
      }
    }
  }

  /** Moves the pointer to an object. The object is created only once the token is known not to be stale. */
  async #move(
    token: bigint,
    objectFor: (before: string | undefined) => Promise<string | undefined>,
  ): Promise<void> {
    for (let tries = 0; tries < triesMax; tries += 1) {
      const { pointer, etag } = await this.#look();
      if (pointer.token > token) throw stale(this.#key, token);
      const object = await objectFor(pointer.object);
      // This call has already moved the pointer: the answer was lost, and the client retried.
      if (pointer.token === token && pointer.object === object) return;
      const text = JSON.stringify({ token: String(token), object });
      const condition = etag === undefined ? { IfNoneMatch: "*" } : { IfMatch: this.#form(etag) };
      if (!(await this.#putIf(this.#key, text, condition))) continue;
      if (pointer.object !== undefined && pointer.object !== object) await this.#delete(pointer.object);
      return;
    }
    throw new Error(`others write to ${this.#key} all the time`);
  }

  async #mustRefuse(key: string, condition: Condition): Promise<void> {
    if (!(await this.#putIf(key, "3", condition))) return;
    const [name = ""] = Object.keys(condition);
    throw new FenceError(
      "RESOURCE_UNFIT",
      `a write to ${this.#bucket} was done although ${name} did not hold`,
    );
  }

  async #look(): Promise<{ pointer: Pointer; etag?: string | undefined }> {
    try {
      const { Body, ETag } = await this.#client.getObject(this.#at(this.#key));
      return { pointer: pointerOf(await Body!.transformToByteArray(), this.#key), etag: ETag };
    } catch (error) {
      if (statusOf(error) === 404) return { pointer: { token: 0n } };
      throw error;
    }
  }

  /** Whether the condition held. */
  async #putIf(key: string, body: string, condition: Condition): Promise<boolean> {
    try {
      await this.#client.putObject({ ...this.#at(key), Body: body, ...condition });
      return true;
    } catch (error) {
      // 409: another write to the key is in flight. 404: there is no object to match.
      if ([404, 409, 412].includes(statusOf(error) ?? 0)) return false;
      throw error;
    }
  }

  async #put(key: string, { body, contentType }: S3Content): Promise<void> {
    const type = contentType !== undefined && { ContentType: contentType };
    await this.#client.putObject({ ...this.#at(key), Body: body, ...type });
  }

  /** Best effort: an object that is left over is never read. */
  async #delete(key: string): Promise<void> {
    await this.#client.deleteObject(this.#at(key)).catch(() => undefined);
  }

  #at(key: string): S3Place {
    return { Bucket: this.#bucket, Key: key };
  }
}

const withoutQuotes = (tag: string): string => tag.replace(/^"(.*)"$/, "$1");

function statusOf(error: unknown): number | undefined {
  const { $metadata } = error as { $metadata?: { httpStatusCode?: number } };
  return $metadata?.httpStatusCode;
}

function pointerOf(bytes: Uint8Array, key: string): Pointer {
  try {
    const { token, object } = JSON.parse(new TextDecoder().decode(bytes)) as Record<
      string,
      string | undefined
    >;
    if (object === undefined || object.startsWith(`${key}.`)) return { token: parseToken(token!), object };
  } catch {
    // Not the JSON of a pointer.
  }
  throw new FenceError("RESOURCE_UNFIT", `the object ${key} is not a fence's`);
}
