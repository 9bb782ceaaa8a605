import { createHash } from "node:crypto";
import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import type { Attributes, FileStat } from "../types.js";
import { checksumHeader, checksums, type Summing } from "./checksums.js";
import { S3Error } from "./errors.js";

/** Attributes of an object's content. When the name gets another content, that begins without them. */
const etagAttribute = "content.etag";
export const sumAttribute = "content.sum.";
const metaAttribute = "content.meta.";
/** Headers stored with an object, and returned with it. */
const kept: Readonly<Record<string, string>> = {
  "content-type": "content.type",
  "cache-control": "content.cache",
  "content-disposition": "content.disposition",
  "content-encoding": "content.encoding",
  "content-language": "content.language",
  expires: "content.expires",
};
/** S3's limit for user metadata. */
const metaBytesMax = 2_048;
const metaHeader = "x-amz-meta-";

const defaultType = "binary/octet-stream";

/** Headers that ask for features which are not implemented here. */
const refusedHeaders = [
  "x-amz-tagging",
  "x-amz-server-side-encryption",
  "x-amz-server-side-encryption-customer-algorithm",
  "x-amz-object-lock-mode",
  "x-amz-object-lock-legal-hold",
  "x-amz-website-redirect-location",
  "x-amz-write-offset-bytes",
];

/** @throws S3Error `NotImplemented` */
export function refuseUnsupported(headers: IncomingHttpHeaders): void {
  const name = refusedHeaders.find((each) => headers[each] !== undefined);
  if (name !== undefined) throw new S3Error("NotImplemented", `${name} is not supported`);
}

/**
 * The attributes that a request's headers give an object.
 * @param query where presigned URLs have the user metadata
 * @throws S3Error `MetadataTooLarge`
 */
export function attributesOf(
  headers: IncomingHttpHeaders,
  query: ReadonlyMap<string, string>,
): Record<string, string> {
  const all: [string, string][] = [];
  for (const [header, attribute] of Object.entries(kept)) {
    const value = valueOf(header, headers[header]);
    if (value !== "") all.push([attribute, value]);
  }
  const given = [...query].map(([name, value]) => [name.toLowerCase(), value] as const);
  let bytes = 0;
  for (const [name, value] of [...given, ...Object.entries(headers)]) {
    if (!name.startsWith(metaHeader)) continue;
    const text = String(value ?? "");
    bytes += name.length - metaHeader.length + Buffer.byteLength(text);
    all.push([metaAttribute + name.slice(metaHeader.length), text]);
  }
  if (bytes > metaBytesMax)
    throw new S3Error("MetadataTooLarge", `metadata has at most ${metaBytesMax} bytes, and not ${bytes}`);
  return Object.fromEntries(all);
}

function valueOf(header: string, value: string | string[] | undefined): string {
  const text = String(value ?? "").trim();
  if (header !== "content-encoding") return text;
  const codings = text.split(",").map((coding) => coding.trim());
  return codings.filter((coding) => coding !== "" && coding !== "aws-chunked").join(",");
}

/** The ETag in quotes. For a file that was not written over S3, it isn't the MD5 of the content. */
export function etagOf({ attributes, version }: Pick<FileStat, "attributes" | "version">): string {
  return `"${attributes?.[etagAttribute] ?? `${version}-0`}"`;
}

/** The headers that describe an object. */
export function objectHeaders(stat: FileStat, withSums: boolean): OutgoingHttpHeaders {
  const { attributes = {}, modifiedMs } = stat;
  const headers: OutgoingHttpHeaders = {
    etag: etagOf(stat),
    "last-modified": new Date(modifiedMs).toUTCString(),
    "content-type": defaultType,
    "accept-ranges": "bytes",
    // A browser must not execute uploaded content.
    "x-content-type-options": "nosniff",
    "content-security-policy": "sandbox",
  };
  for (const [header, attribute] of Object.entries(kept)) {
    const value = attributes[attribute];
    if (value !== undefined) headers[header] = value;
  }
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith(metaAttribute)) headers[metaHeader + name.slice(metaAttribute.length)] = value;
    if (withSums && name.startsWith(sumAttribute)) {
      headers[checksumHeader + name.slice(sumAttribute.length)] = value;
      headers["x-amz-checksum-type"] = "FULL_OBJECT";
    }
  }
  return headers;
}

/** Changes that replace all attributes of the content by the given ones; ETag and checksums stay. */
export function replacing(
  before: Attributes | undefined,
  attributes: Readonly<Record<string, string>>,
): Record<string, string | null> {
  const gone = Object.keys(before ?? {}).filter(
    (name) => name.startsWith("content.") && name !== etagAttribute && !name.startsWith(sumAttribute),
  );
  return { ...Object.fromEntries(gone.map((name) => [name, null])), ...attributes };
}

/**
 * Computes the checksums of a body while it is read. At the end compares them with those announced by the
 * client.
 */
export class BodySums {
  readonly #md5 = createHash("md5");
  readonly #sha256 = createHash("sha256");
  readonly #expectedMd5: string | undefined;
  readonly #expectedSha256: string | undefined;
  readonly #sums = new Map<string, Summing>();
  readonly #expected = new Map<string, string>();
  #md5Hex = "";
  readonly #results = new Map<string, string>();

  /**
   * @param sha256 the body's SHA-256 from the signature, in hex
   * @throws S3Error `InvalidDigest`, `InvalidRequest`
   */
  constructor(headers: IncomingHttpHeaders, sha256: string | undefined) {
    const md5 = headers["content-md5"];
    if (md5 !== undefined && Buffer.from(String(md5), "base64").length !== 16)
      throw new S3Error("InvalidDigest", "Content-MD5 is not the base64 of an MD5");
    this.#expectedMd5 = md5 === undefined ? undefined : String(md5).trim();
    this.#expectedSha256 = sha256;
    for (const [name, make] of checksums) {
      const value = headers[checksumHeader + name];
      const trailers = String(headers["x-amz-trailer"] ?? "").toLowerCase();
      const isTrailing = trailers.split(",").some((each) => each.trim() === checksumHeader + name);
      if (value === undefined && !isTrailing) continue;
      this.#sums.set(name, make());
      if (value !== undefined) this.#expected.set(name, String(value).trim());
    }
  }

  add(bytes: Uint8Array): void {
    this.#md5.update(bytes);
    if (this.#expectedSha256 !== undefined) this.#sha256.update(bytes);
    for (const sum of this.#sums.values()) sum.add(bytes);
  }

  /** @throws S3Error `BadDigest`, `XAmzContentSHA256Mismatch` */
  end(trailer: ReadonlyMap<string, string>): void {
    const md5 = this.#md5.digest();
    this.#md5Hex = md5.toString("hex");
    if (this.#expectedMd5 !== undefined && this.#expectedMd5 !== md5.toString("base64"))
      throw new S3Error("BadDigest", "the body's MD5 is not that of Content-MD5");
    if (this.#expectedSha256 !== undefined && this.#expectedSha256 !== this.#sha256.digest("hex"))
      throw new S3Error(
        "XAmzContentSHA256Mismatch",
        "the body's SHA-256 is not that of x-amz-content-sha256",
      );
    for (const [name, sum] of this.#sums) {
      const expected = this.#expected.get(name) ?? trailer.get(checksumHeader + name);
      const found = sum.end();
      if (expected !== found)
        throw new S3Error("BadDigest", `the body's ${name} is ${found}, and not ${expected ?? "announced"}`);
      this.#results.set(name, found);
    }
  }

  /** The MD5 in hex. */
  get md5(): string {
    return this.#md5Hex;
  }

  get attributes(): Record<string, string> {
    const sums = [...this.#results].map(([name, value]) => [sumAttribute + name, value] as const);
    return { [etagAttribute]: this.#md5Hex, ...Object.fromEntries(sums) };
  }

  get headers(): OutgoingHttpHeaders {
    return Object.fromEntries([...this.#results].map(([name, value]) => [checksumHeader + name, value]));
  }
}

/** The ETag of an object with these parts, without quotes. */
export function etagOfParts(md5s: readonly string[]): string {
  const all = createHash("md5");
  for (const md5 of md5s) all.update(Buffer.from(md5, "hex"));
  return `${all.digest("hex")}-${md5s.length}`;
}

export { etagAttribute };
