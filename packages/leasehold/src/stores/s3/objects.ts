import { randomUUID } from "node:crypto";
import { LeaseholdError } from "../../lease/errors.js";
import { type S3Answer, S3Refusal, type S3Client } from "./client.js";
import { markerKey } from "./keys.js";

/**
 * The maximum number of retries. Each time, another process has created or removed the object at the same
 * moment.
 */
const markerTriesMax = 5;

export interface S3Object {
  readonly etag: string;
  readonly content: Uint8Array;
}

/** The condition of a write. */
export type Condition = { readonly absent: true } | { readonly etag: string };

/**
 * The form of an entity tag in `If-Match`: quoted, as the server returns it, or bare, because some versions
 * of Ceph's radosgw compare only the part between the quotes.
 */
export type EtagForm = "quoted" | "bare";

/** The operations on objects, each a single request. */
export class S3Objects {
  readonly #client: S3Client;
  etagForm: EtagForm = "quoted";

  constructor(client: S3Client) {
    this.#client = client;
  }

  /**
   * Resolves with `undefined` if the object does not exist; rejects with {@link S3Refusal} if the bucket
   * cannot be read.
   */
  async get(key: string): Promise<S3Object | undefined> {
    const answer = await this.#client.send({ method: "GET", key });
    if (answer.ok) {
      if (answer.etag === undefined) throw new LeaseholdError("STORE_UNFIT", "objects have no entity tag");
      return { etag: answer.etag, content: answer.body };
    }
    const refusal = new S3Refusal(answer);
    if (answer.status === 404 && refusal.word !== "NoSuchBucket") return undefined;
    throw refusal;
  }

  put(key: string, content: Uint8Array, condition: Condition): Promise<S3Answer> {
    const headers: Record<string, string> =
      "absent" in condition ? { "if-none-match": "*" } : { "if-match": this.#formed(condition.etag) };
    return this.#client.send({ method: "PUT", key, body: content, headers });
  }

  async remove(key: string): Promise<void> {
    const answer = await this.#client.send({ method: "DELETE", key });
    if (!answer.ok) throw new S3Refusal(answer);
  }

  /** The text of a page of keys. */
  async list(query: Readonly<Record<string, string>>): Promise<string> {
    const answer = await this.#client.send({ method: "GET", query: { "list-type": "2", ...query } });
    if (!answer.ok) throw new S3Refusal(answer);
    return new TextDecoder().decode(answer.body);
  }

  /** The store's marker, created if there is none. */
  async marker(): Promise<string> {
    for (let tries = 0; tries < markerTriesMax; tries += 1) {
      const found = await this.get(markerKey);
      if (found !== undefined) return new TextDecoder().decode(found.content);
      const answer = await this.put(markerKey, new TextEncoder().encode(randomUUID()), { absent: true });
      // A second writer is refused in one way or another, and reads the first one's marker.
      if (!answer.ok && !isRefusal(answer) && answer.status < 500) throw new S3Refusal(answer);
    }
    throw new LeaseholdError("STORE_UNAVAILABLE", "the store's marker can be neither read nor created");
  }

  #formed(etag: string): string {
    return this.etagForm === "quoted" ? etag : etag.replace(/^"(.*)"$/, "$1");
  }
}

/** The condition is not met, another conditional write is in flight, or the object with that tag is gone. */
export function isRefusal(answer: S3Answer): boolean {
  return answer.status === 412 || answer.status === 409 || answer.status === 404;
}
