import { LeaseholdError } from "../../lease/errors.js";
import { operationMsMax } from "../common/server-limits.js";
import type { S3Address } from "./address.js";
import type { CredentialsSource } from "./credentials.js";
import type { Sign } from "./signature.js";

/**
 * The maximum length of an answer, bytes: a page of a list has up to a thousand keys of a thousand bytes,
 * each with as much around it.
 */
const answerBytesMax = 4_194_304;

export interface S3Answer {
  readonly status: number;
  readonly ok: boolean;
  readonly etag: string | undefined;
  readonly body: Uint8Array;
}

export interface S3Request {
  readonly method: "GET" | "PUT" | "DELETE";
  /** The key without the prefix; absent for the bucket itself. */
  readonly key?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
}

/** An answer with an unexpected status. */
export class S3Refusal extends Error {
  readonly status: number;
  /** S3's error code, such as `NoSuchBucket`. */
  readonly word: string;

  constructor(answer: S3Answer) {
    const text = new TextDecoder().decode(answer.body);
    const field = (name: string) => new RegExp(`<${name}>([^<]{0,200})`).exec(text)?.[1] ?? "";
    super(`${answer.status} ${field("Code")} ${field("Message")}`.trim());
    this.name = "S3Refusal";
    this.status = answer.status;
    this.word = field("Code");
  }
}

/**
 * Signs requests to one bucket and sends each once: a conditional write may only be repeated by a caller that
 * knows its meaning.
 */
export class S3Client {
  readonly #address: S3Address;
  readonly #credentials: CredentialsSource;
  readonly #sign: Sign;
  readonly #closed = new AbortController();

  constructor(address: S3Address, credentials: CredentialsSource, sign: Sign) {
    this.#address = address;
    this.#credentials = credentials;
    this.#sign = sign;
  }

  /** Rejects if no answer arrives; the request may still have taken effect. */
  async send(request: S3Request): Promise<S3Answer> {
    const { origin, root, prefix, region } = this.#address;
    const { method, key, query = {}, headers = {}, body } = request;
    const path = key === undefined ? root.replace(/(.)\/$/, "$1") : root + encodePath(prefix + key);
    const search = encodeQuery(query);
    const url = `${origin}${path}${search === "" ? "" : `?${search}`}`;
    const parts = { method, url, headers, body: body ?? new Uint8Array() };
    const response = await fetch(url, {
      method,
      headers: await this.#sign(parts, await this.#credentials(), region, new Date()),
      ...(body !== undefined && { body }),
      redirect: "manual",
      signal: AbortSignal.any([this.#closed.signal, AbortSignal.timeout(operationMsMax)]),
    });
    return {
      status: response.status,
      ok: response.ok,
      etag: response.headers.get("etag") ?? undefined,
      body: await readBody(response),
    };
  }

  close(): void {
    this.#closed.abort();
  }
}

function encodePath(key: string): string {
  return key.split("/").map(encodeStrictly).join("/");
}

function encodeQuery(query: Readonly<Record<string, string>>): string {
  return Object.entries(query)
    .map(([name, value]) => `${encodeStrictly(name)}=${encodeStrictly(value)}`)
    .join("&");
}

/** Encodes everything but letters, digits and `-._~` as `%XX`, as it is signed. */
function encodeStrictly(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

async function readBody(response: Response): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    // Leaving the loop cancels the rest of the body.
    if (bytes > answerBytesMax)
      throw new LeaseholdError("STORE_FOREIGN", "an object is too long to be a record");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
