import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { S3Error } from "./errors.js";
import { decodeStrictly, encodeStrictly } from "./keys.js";

/** The largest difference allowed between a client's clock and this node's, ms. */
const skewMsMax = 15 * 60_000;
/** The longest validity of a presigned URL, s. */
const expiresMax = 604_800;
/** The most headers that one signature may cover. */
const signedHeadersMax = 100;

export const algorithm = "AWS4-HMAC-SHA256";
export const unsignedPayload = "UNSIGNED-PAYLOAD";

/** The only user: the name is the access key, and the password is the secret. */
export interface S3User {
  readonly name: string;
  readonly password: string;
}

/** A request as it was received. */
export interface SignedRequest {
  readonly method: string;
  /** As in the first line of the request: path and query, still encoded. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
}

/** The starting point for the signatures of a body's chunks. */
export interface Seed {
  readonly key: Buffer;
  readonly date: string;
  readonly scope: string;
  readonly signature: string;
}

interface Claim {
  readonly accessKey: string;
  readonly scope: string;
  readonly date: string;
  readonly signedHeaders: readonly string[];
  readonly signature: string;
  readonly payload: string;
  readonly query: readonly (readonly [string, string])[];
}

/** Names and values from a query, decoded. */
export function queryOf(url: string): (readonly [name: string, value: string])[] {
  const at = url.indexOf("?");
  if (at < 0) return [];
  const pairs = url.slice(at + 1).split("&");
  return pairs
    .filter((pair) => pair !== "")
    .map((pair) => {
      const equals = pair.indexOf("=");
      const [name, value] = equals < 0 ? [pair, ""] : [pair.slice(0, equals), pair.slice(equals + 1)];
      return [decodeStrictly(name.replaceAll("+", " ")), decodeStrictly(value.replaceAll("+", " "))] as const;
    });
}

/** The path from a URL, decoded. */
export function rawPathOf(url: string): string {
  return decodeStrictly(url.replace(/^https?:\/\/[^/?#]*/i, "").replace(/[?#].*$/s, ""));
}

/**
 * Checks a request's signature (AWS Signature Version 4) in its header or its query.
 * @throws S3Error `AccessDenied`, `InvalidAccessKeyId`, `SignatureDoesNotMatch`, `RequestTimeTooSkewed`, and
 *   others for malformed requests
 */
export function checkSignature(request: SignedRequest, user: S3User, nowMs: number): Seed {
  const { headers } = request;
  const query = queryOf(request.url);
  const isInQuery = query.some(([name]) => name === "X-Amz-Signature" || name === "X-Amz-Algorithm");
  if (headers.authorization === undefined && !isInQuery)
    throw new S3Error("AccessDenied", "the request is not signed");
  const claim =
    headers.authorization === undefined
      ? claimInQuery(query, nowMs)
      : claimInHeader(headers.authorization, headers, query, nowMs);
  if (claim.accessKey !== user.name)
    throw new S3Error("InvalidAccessKeyId", "there is no user with this access key");
  mustBeSigned(headers, claim.signedHeaders);
  const [day = "", region = "", service = ""] = claim.scope.split("/");
  const key = signingKey(user.password, day, region, service);
  const text = [algorithm, claim.date, claim.scope, sha256(canonicalRequest(request, claim))].join("\n");
  const expected = hmac(key, text).toString("hex");
  if (!isSame(expected, claim.signature))
    throw new S3Error(
      "SignatureDoesNotMatch",
      "the signature is not that of this request and the user's secret",
    );
  return { key, date: claim.date, scope: claim.scope, signature: claim.signature };
}

export function isSame(expected: string, given: string): boolean {
  const [one, other] = [Buffer.from(expected), Buffer.from(given)];
  return one.length === other.length && timingSafeEqual(one, other);
}

export function hmac(key: Buffer | string, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}

export function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function signingKey(secret: string, day: string, region: string, service: string): Buffer {
  return hmac(hmac(hmac(hmac(`AWS4${secret}`, day), region), service), "aws4_request");
}

function claimInHeader(
  authorization: string,
  headers: IncomingHttpHeaders,
  query: Claim["query"],
  nowMs: number,
): Claim {
  const wrong = new S3Error("AuthorizationHeaderMalformed", `Authorization is no ${algorithm} signature`);
  const [kind, ...rest] = authorization.trim().split(/\s+/);
  if (kind !== algorithm) throw wrong;
  const fields = new Map(
    rest
      .join("")
      .split(",")
      .map((field) => {
        const at = field.indexOf("=");
        return [field.slice(0, at), field.slice(at + 1)] as const;
      }),
  );
  const signature = fields.get("Signature") ?? "";
  const { accessKey, scope, day } = credentialIn(fields.get("Credential") ?? "", wrong);
  const date = oneOf(headers["x-amz-date"]) ?? "";
  const atMs = timeOf(date, wrong);
  if (!date.startsWith(day)) throw wrong;
  if (Math.abs(nowMs - atMs) > skewMsMax)
    throw new S3Error("RequestTimeTooSkewed", "the clocks of client and node differ by more than 15 minutes");
  const payload = oneOf(headers["x-amz-content-sha256"]);
  if (payload === undefined) throw new S3Error("InvalidRequest", "x-amz-content-sha256 is missing");
  const signedHeaders = headersIn(fields.get("SignedHeaders") ?? "", wrong);
  return { accessKey, scope, date, signedHeaders, signature, payload, query };
}

function claimInQuery(query: Claim["query"], nowMs: number): Claim {
  const wrong = new S3Error(
    "AuthorizationQueryParametersError",
    "the address has no valid X-Amz-Algorithm, -Credential, -Date, -Expires, -SignedHeaders and -Signature",
  );
  const one = (name: string): string => {
    const values = query.filter(([each]) => each === name);
    if (values.length !== 1) throw wrong;
    return values[0]![1];
  };
  if (one("X-Amz-Algorithm") !== algorithm) throw wrong;
  const { accessKey, scope, day } = credentialIn(one("X-Amz-Credential"), wrong);
  const date = one("X-Amz-Date");
  const atMs = timeOf(date, wrong);
  const expires = one("X-Amz-Expires");
  if (!/^\d{1,6}$/.test(expires) || Number(expires) < 1 || Number(expires) > expiresMax) throw wrong;
  if (!date.startsWith(day)) throw wrong;
  if (nowMs > atMs + Number(expires) * 1_000)
    throw new S3Error("AccessDenied", "the signed address has expired");
  if (atMs > nowMs + skewMsMax) throw new S3Error("AccessDenied", "the signed address is not valid yet");
  const [signature, signedHeaders] = [one("X-Amz-Signature"), headersIn(one("X-Amz-SignedHeaders"), wrong)];
  const rest = query.filter(([name]) => name !== "X-Amz-Signature");
  const payload = rest.find(([name]) => name === "X-Amz-Content-Sha256")?.[1] ?? unsignedPayload;
  return { accessKey, scope, date, signedHeaders, signature, payload, query: rest };
}

/**
 * A credential: key, day, region, s3 and aws4_request, separated by slashes. The key may contain more
 * slashes.
 */
function credentialIn(text: string, wrong: S3Error) {
  const parts = text.split("/");
  const scope = parts.slice(-4);
  const accessKey = parts.slice(0, -4).join("/");
  const [day = "", region = "", service, end] = scope;
  if (accessKey === "" || !/^\d{8}$/.test(day) || region === "" || service !== "s3" || end !== "aws4_request")
    throw wrong;
  return { accessKey, scope: scope.join("/"), day };
}

function headersIn(text: string, wrong: S3Error): string[] {
  const names = text.split(";");
  const isRight = names.includes("host") && names.length <= signedHeadersMax;
  if (!isRight || names.some((name) => !/^[a-z0-9!#$%&'*+.^_`|~-]+$/.test(name))) throw wrong;
  return names;
}

/** Parses `20261127T131452Z` to ms since 1970. */
function timeOf(date: string, wrong: S3Error): number {
  const match = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(date);
  if (match === null) throw wrong;
  const [year, month, day, hour, minute, second] = match.slice(1);
  const ms = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  if (Number.isNaN(ms)) throw wrong;
  return ms;
}

/** Headers that S3 interprets must be signed: an unsigned one could have been added in transit. */
function mustBeSigned(headers: IncomingHttpHeaders, signed: readonly string[]): void {
  const all = new Set(signed);
  const name = Object.keys(headers).find((each) => each.startsWith("x-amz-") && !all.has(each));
  if (name !== undefined) throw new S3Error("AccessDenied", `the header ${name} is not signed`);
}

function canonicalRequest({ method, url, headers }: SignedRequest, claim: Claim): string {
  const path = rawPathOf(url).split("/").map(encodeStrictly).join("/");
  const query = claim.query
    .map(([name, value]) => [encodeStrictly(name), encodeStrictly(value)] as const)
    .sort(([a, x], [b, y]) => (a < b ? -1 : a > b ? 1 : x < y ? -1 : x > y ? 1 : 0))
    .map(([name, value]) => `${name}=${value}`)
    .join("&");
  const lines = claim.signedHeaders.map((name) => {
    const value = headers[name];
    const text = Array.isArray(value) ? value.join(",") : (value ?? "");
    return `${name}:${text.trim().replaceAll(/ +/g, " ")}\n`;
  });
  return [method, path, query, lines.join(""), claim.signedHeaders.join(";"), claim.payload].join("\n");
}

function oneOf(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}
