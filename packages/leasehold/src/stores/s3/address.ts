import { LeaseholdError } from "../../lease/errors.js";

type Environment = Readonly<Record<string, string | undefined>>;

export interface S3Address {
  /** For messages: no credentials. */
  readonly name: string;
  /** The origin (scheme and host) of requests for the bucket. */
  readonly origin: string;
  /**
   * The prefix of each key in a request's path: `/`, or `/bucket/` if the host does not contain the bucket.
   */
  readonly root: string;
  /** The prefix of each object's key, either empty or with a final slash. */
  readonly prefix: string;
  readonly region: string;
}

const form = "the address of an S3 store is s3://bucket/prefix?endpoint=https://host&region=name";

/**
 * Parses `s3://bucket/prefix?endpoint=…&region=…`. Without an endpoint here, in `AWS_ENDPOINT_URL_S3` or in
 * `AWS_ENDPOINT_URL`, the bucket is at AWS. Its region comes from the URL, `AWS_REGION`, `AWS_DEFAULT_REGION`
 * or the profile.
 *
 * @throws LeaseholdError `INVALID_URL`
 */
export function parseS3Url(url: URL, environment: Environment, profileRegion: string | undefined): S3Address {
  const bucket = url.host;
  const path = decodeURIComponent(url.pathname).replace(/^\/+|\/+$/g, "");
  const known = new Set(["endpoint", "region"]);
  const isRight =
    url.protocol === "s3:" &&
    /^[a-zA-Z0-9][a-zA-Z0-9._-]{2,62}$/.test(bucket) &&
    !path
      .split("/")
      .some((part, _, parts) => [".", ".."].includes(part) || (part === "" && parts.length > 1)) &&
    [...url.searchParams.keys()].every((name) => known.has(name));
  if (!isRight) throw new LeaseholdError("INVALID_URL", form);
  const region =
    url.searchParams.get("region") ??
    environment["AWS_REGION"] ??
    environment["AWS_DEFAULT_REGION"] ??
    profileRegion ??
    "us-east-1";
  const prefix = path === "" ? "" : `${path}/`;
  const given =
    url.searchParams.get("endpoint") ?? environment["AWS_ENDPOINT_URL_S3"] ?? environment["AWS_ENDPOINT_URL"];
  const name = `s3://${bucket}/${path}`;
  if (given !== undefined) {
    const endpoint = parseEndpoint(given);
    return { name: `${name}?endpoint=${endpoint}`, origin: endpoint, root: `/${bucket}/`, prefix, region };
  }
  // A name with dots does not match the certificate for *.s3.….
  const host = `s3.${region}.amazonaws.com`;
  return bucket.includes(".")
    ? { name, origin: `https://${host}`, root: `/${bucket}/`, prefix, region }
    : { name, origin: `https://${bucket}.${host}`, root: "/", prefix, region };
}

function parseEndpoint(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isRight =
    url !== undefined && /^https?:$/.test(url.protocol) && url.pathname === "/" && url.username === "";
  if (!isRight)
    throw new LeaseholdError("INVALID_URL", `${form}; the endpoint must be only a scheme and a host`);
  return url.origin;
}
