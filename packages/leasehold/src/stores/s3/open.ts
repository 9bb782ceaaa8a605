import { assertFit, type OpenStore } from "../common/contract.js";
import { AtomicStore } from "../common/atomic-store.js";
import { openOverLink } from "../common/open-server.js";
import { parseS3Url, type S3Address } from "./address.js";
import { S3Client } from "./client.js";
import { findCredentials, readProfile } from "./credentials.js";
import { s3Failure } from "./failure.js";
import { S3Medium } from "./medium.js";
import { S3Objects } from "./objects.js";
import { probeConditions } from "./probe.js";
import { loadSign } from "./signature.js";

/**
 * Opens a bucket, or the objects below one of its prefixes, as a store:
 * `s3://bucket/prefix?endpoint=https://host&region=name`.
 */
export const openS3Store: OpenStore = async (url, { environment = process.env, signal }) => {
  signal?.throwIfAborted();
  const profile = await readProfile(environment);
  const address = parseS3Url(url, environment, profile["region"]);
  const client = new S3Client(address, findCredentials(environment, profile), await loadSign());
  return openOverLink(
    client,
    signal,
    () => openOn(client, address),
    (error) => s3Failure(address.name, error),
  );
};

async function openOn(client: S3Client, address: S3Address): Promise<AtomicStore> {
  const objects = new S3Objects(client);
  // Reports a missing permission to read or list before anything is written.
  await objects.list({ prefix: address.prefix, "max-keys": "1" });
  const findings = assertFit(address.name, await probeConditions(objects));
  const store = new AtomicStore(new S3Medium(address, client, objects));
  store.findings = findings;
  return store;
}
