import { createHash } from "node:crypto";
import { loadPackage } from "../../runtime/optional-package.js";
import type { S3Credentials } from "./credentials.js";

/** The signed parts of a request. */
export interface SignedParts {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** The headers of a request, with AWS Signature Version 4. */
export type Sign = (
  parts: SignedParts,
  credentials: S3Credentials,
  region: string,
  date: Date,
) => Promise<Headers>;

/**
 * Loads the package that signs. Its client would also send requests, and repeat ones that must be sent once.
 *
 * Rejects with a `LeaseholdError` `UNSUPPORTED` if it is not installed.
 */
export async function loadSign(): Promise<Sign> {
  const { AwsV4Signer } = await loadPackage<typeof import("aws4fetch")>("aws4fetch", "a store on S3");
  return async ({ method, url, headers, body }, credentials, region, date) => {
    const { accessKeyId, secretAccessKey, sessionToken } = credentials;
    const bodyHash = createHash("sha256").update(body).digest("hex");
    const signer = new AwsV4Signer({
      method,
      url,
      headers: { ...headers, "x-amz-content-sha256": bodyHash },
      accessKeyId,
      secretAccessKey,
      ...(sessionToken !== undefined && { sessionToken }),
      service: "s3",
      region,
      datetime: date.toISOString().replace(/[-:]|\.\d+/g, ""),
      // The signature includes the conditions, so nobody on the way can remove them.
      allHeaders: true,
    });
    return (await signer.sign()).headers;
  };
}
