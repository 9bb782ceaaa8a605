import { createHash, createHmac } from "node:crypto";
import type { S3Credentials } from "./credentials.js";

/** The signed parts of a request. */
export interface SignedParts {
  readonly method: string;
  readonly host: string;
  /** Already encoded by {@link encodeStrictly}, except for slashes. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/**
 * The headers of a request, with AWS Signature Version 4. All of its headers are signed, the conditions among
 * them: nobody on the way can remove them.
 */
export function sign(
  parts: SignedParts,
  credentials: S3Credentials,
  region: string,
  date: Date,
): Record<string, string> {
  const time = date.toISOString().replace(/[-:]|\.\d+/g, "");
  const scope = `${time.slice(0, 8)}/${region}/s3/aws4_request`;
  const bodyHash = sha256(parts.body);
  const headers: Record<string, string> = {
    ...parts.headers,
    "x-amz-content-sha256": bodyHash,
    "x-amz-date": time,
    ...(credentials.sessionToken !== undefined && { "x-amz-security-token": credentials.sessionToken }),
  };
  const signed = Object.entries({ ...headers, host: parts.host }).sort(([a], [b]) => (a < b ? -1 : 1));
  const names = signed.map(([name]) => name).join(";");
  const request = [
    parts.method,
    parts.path,
    encodeQuery(parts.query),
    ...signed.map(([name, value]) => `${name}:${value}`),
    "",
    names,
    bodyHash,
  ].join("\n");
  const key = [time.slice(0, 8), region, "s3", "aws4_request"].reduce<string | Buffer>(
    (secret, word) => createHmac("sha256", secret).update(word).digest(),
    `AWS4${credentials.secretAccessKey}`,
  );
  const text = ["AWS4-HMAC-SHA256", time, scope, sha256(request)].join("\n");
  const signature = createHmac("sha256", key).update(text).digest("hex");
  const authorization = `AWS4-HMAC-SHA256 Credential=${credentials.accessKeyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`;
  return { ...headers, authorization };
}

/** Encodes everything but letters, digits and `-._~` as `%XX`, as the signature requires. */
export function encodeStrictly(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

export function encodeQuery(query: Readonly<Record<string, string>>): string {
  return Object.keys(query)
    .sort()
    .map((name) => `${encodeStrictly(name)}=${encodeStrictly(query[name]!)}`)
    .join("&");
}

function sha256(content: string | Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}
