/**
 * Real servers for the measurements on stores, started as the tests of stores start them. Reports and skips
 * missing ones.
 */
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { AwsClient } from "aws4fetch";
import { runnerImport } from "vite";

/** The running servers, in the order of their starts. */
const started = [];

/**
 * Starts a server; undefined where it is not available. `path`: a file of `test/stores/servers`; `name`: the
 * class in it; `options`: what it starts with.
 */
export async function startServer(path, name, options = path === "redis" ? { durable: true } : {}) {
  try {
    const file = fileURLToPath(new URL(`../test/stores/servers/${path}.ts`, import.meta.url));
    const { module } = await runnerImport(file);
    const server = await module[name].start(options);
    started.push(server);
    return { server, module };
  } catch (error) {
    process.stderr.write(`left out: ${path}: ${error.message}\n`);
    return undefined;
  }
}

export async function stopServers() {
  for (const server of started.splice(0).toReversed()) await server.close();
}

/** Sends a signed request to the bucket `bench` of a server. */
export async function s3Send({ server, module }, method, key, headers = {}, body = "") {
  const { accessKeyId, secretAccessKey } = module;
  const client = new AwsClient({
    accessKeyId,
    secretAccessKey,
    service: "s3",
    region: "us-east-1",
    retries: 0,
  });
  return client.fetch(`${server.endpoint}/bench${key === "" ? "" : `/${key}`}`, {
    method,
    headers: { ...headers, "x-amz-content-sha256": createHash("sha256").update(body).digest("hex") },
    ...(method === "PUT" && { body }),
  });
}

/** Creates the bucket, and sets the credentials for leases. */
export async function startBucket() {
  const s3 = await startServer("s3", "S3Server");
  if (s3 === undefined) return undefined;
  process.env["AWS_ACCESS_KEY_ID"] = s3.module.accessKeyId;
  process.env["AWS_SECRET_ACCESS_KEY"] = s3.module.secretAccessKey;
  await s3Send(s3, "PUT", "");
  return s3;
}
