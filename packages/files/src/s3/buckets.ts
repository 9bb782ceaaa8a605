import { LeaseholdError } from "leasehold/common";
import { answer, type Call, xmlTextOf } from "./call.js";
import { S3Error } from "./errors.js";
import { uploadsFolder } from "../names/uploads-folder.js";
import { checkBucket } from "./keys.js";
import { listObjects } from "./listing.js";
import { mustHaveBucket } from "./objects.js";
import { documentOf, elements, timeText, Xml } from "./xml.js";

/** Buckets listed in one answer. */
const bucketsMax = 10_000;

/** The root's folders are the buckets. Folders whose names aren't valid bucket names are not listed. */
export async function listBuckets(call: Call): Promise<void> {
  const buckets: Xml[] = [];
  for (let after: string | undefined; ;) {
    const { entries, next } = await call.files.children("", { after });
    for (const { kind, path, modifiedMs } of entries) {
      if (kind !== "folder" || path === uploadsFolder || !isBucket(path)) continue;
      const fields = elements([
        ["Name", path],
        ["CreationDate", timeText(modifiedMs)],
      ]);
      buckets.push(elements([["Bucket", fields]]));
    }
    if (next === undefined || buckets.length >= bucketsMax) break;
    after = next;
  }
  const owner = elements([
    ["ID", "leasehold"],
    ["DisplayName", "leasehold"],
  ]);
  const all = elements([
    ["Owner", owner],
    ["Buckets", new Xml(buckets.map(({ text }) => text).join(""))],
  ]);
  answer(call, 200, {}, documentOf("ListAllMyBucketsResult", all));
}

function isBucket(name: string): boolean {
  try {
    checkBucket(name);
    return true;
  } catch {
    return false;
  }
}

export async function createBucket(call: Call): Promise<void> {
  const { files, bucket } = call;
  checkBucket(bucket);
  // The XML names a region, but there is only one here, so it is ignored.
  if (call.request.headers["content-length"] !== undefined) await xmlTextOf(call);
  try {
    await files.makeFolder(bucket, { makeFolders: false });
  } catch (error) {
    if (!(error instanceof LeaseholdError) || error.code !== "FILE_EXISTS") throw error;
    throw new S3Error("BucketAlreadyOwnedByYou", `there is a bucket ${bucket}`);
  }
  answer(call, 200, { location: `/${bucket}` });
}

export async function headBucket(call: Call): Promise<void> {
  await mustHaveBucket(call.files, call.bucket);
  answer(call, 200);
}

export async function deleteBucket(call: Call): Promise<void> {
  const { files, bucket } = call;
  await mustHaveBucket(files, bucket);
  try {
    await files.remove(bucket, { recursive: "folders" });
  } catch (error) {
    if (!(error instanceof LeaseholdError) || error.code !== "FILE_EXISTS") throw error;
    throw new S3Error("BucketNotEmpty", `there are objects in ${bucket}`);
  }
  answer(call, 204);
}

export async function listBucket(call: Call): Promise<void> {
  await mustHaveBucket(call.files, call.bucket);
  answer(call, 200, {}, await listObjects(call.files, call.bucket, call.query));
}

export async function bucketLocation(call: Call): Promise<void> {
  await mustHaveBucket(call.files, call.bucket);
  answer(call, 200, {}, documentOf("LocationConstraint", new Xml("")));
}

/** There are no versions, as in a bucket for which versioning was never enabled. */
export async function bucketVersioning(call: Call): Promise<void> {
  await mustHaveBucket(call.files, call.bucket);
  answer(call, 200, {}, documentOf("VersioningConfiguration", new Xml("")));
}
