import {
  bucketLocation,
  bucketVersioning,
  createBucket,
  deleteBucket,
  headBucket,
  listBucket,
  listBuckets,
} from "./buckets.js";
import type { Call } from "./call.js";
import { S3Error } from "./errors.js";
import { copyObject, deleteObject, deleteObjects, getObject, putObject } from "./objects.js";
import {
  abortUpload,
  completeUpload,
  copyPart,
  createUpload,
  listParts,
  listUploads,
  uploadPart,
} from "./uploads.js";

type Operation = (call: Call) => Promise<void>;

/** Query parameters of operations that are not supported. */
const notServed = new Set([
  "accelerate",
  "acl",
  "analytics",
  "attributes",
  "cors",
  "encryption",
  "intelligent-tiering",
  "inventory",
  "legal-hold",
  "lifecycle",
  "logging",
  "metrics",
  "notification",
  "object-lock",
  "ownershipControls",
  "policy",
  "policyStatus",
  "publicAccessBlock",
  "renameObject",
  "replication",
  "requestPayment",
  "restore",
  "retention",
  "select",
  "tagging",
  "torrent",
  "versionId",
  "versions",
  "website",
]);

/** @throws S3Error `NotImplemented`, `MethodNotAllowed` */
export function operationOf(call: Call): Operation {
  const { bucket, key, query } = call;
  const refused = [...query.keys()].find((name) => notServed.has(name));
  const isRefused = refused !== undefined && !(refused === "versionId" && query.get(refused) === "null");
  if (isRefused) throw new S3Error("NotImplemented", `${refused} is not supported`);
  const method = call.request.method ?? "";
  const found = bucket === "" ? (method === "GET" ? listBuckets : undefined) : inBucket(call, method, key);
  if (found !== undefined) return found;
  throw new S3Error("MethodNotAllowed", `${method} is not supported here`);
}

function inBucket(call: Call, method: string, key: string): Operation | undefined {
  return key === "" ? ofBucket(call, method) : ofObject(call, method);
}

function ofBucket({ query }: Call, method: string): Operation | undefined {
  switch (method) {
    case "GET":
      if (query.has("location")) return bucketLocation;
      if (query.has("versioning")) return bucketVersioning;
      return query.has("uploads") ? listUploads : listBucket;
    case "HEAD":
      return headBucket;
    case "PUT":
      return query.has("versioning") ? undefined : createBucket;
    case "DELETE":
      return deleteBucket;
    case "POST":
      return query.has("delete") ? deleteObjects : undefined;
    default:
      return undefined;
  }
}

function ofObject({ query, request }: Call, method: string): Operation | undefined {
  const isInUpload = query.has("uploadId");
  const isCopy = request.headers["x-amz-copy-source"] !== undefined;
  switch (method) {
    case "GET":
      return isInUpload ? listParts : getObject;
    case "HEAD":
      return getObject;
    case "PUT":
      if (isInUpload) return isCopy ? copyPart : uploadPart;
      return isCopy ? copyObject : putObject;
    case "DELETE":
      return isInUpload ? abortUpload : deleteObject;
    case "POST":
      if (query.has("uploads")) return createUpload;
      return isInUpload ? completeUpload : undefined;
    default:
      return undefined;
  }
}
