import { readFileSync } from "node:fs";
import { open, rm, stat, writeFile } from "node:fs/promises";
import { availableParallelism, freemem, hostname, loadavg, release, totalmem, uptime } from "node:os";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { packageVersion } from "../../runtime/package-version.js";
import { isClockSynchronized } from "../../runtime/clock-sync.js";
import { clockSlew } from "../../runtime/clock-slew.js";
import type { SharedOptions } from "../common/settings.js";
import { toJson } from "../output/json.js";
import { redacted, redactedValue } from "../output/redact.js";
import { createFile, secretMode } from "./cert/files.js";

/** The maximum size of a file's tail, and of a response. */
const textBytesMax = 1024 * 1024;
const fetchMsMax = 5_000;

export interface BundleOptions {
  /** The file to write. */
  readonly bundle?: string;
  /** Logs and configuration files. */
  readonly include?: readonly string[];
  /** Servers with metrics and health checks, `host:port`. */
  readonly metrics?: readonly string[];
}

/** Writes a file of compressed JSON for a bug report, without secrets. */
export async function writeBundle(
  file: string,
  options: BundleOptions & SharedOptions,
  examination: unknown,
): Promise<void> {
  const { include = [], metrics = [] } = options;
  const document = {
    bundle: 1,
    leasehold: packageVersion(),
    time: new Date().toISOString(),
    machine: machine(),
    clocks: await clocks(),
    options,
    environment: environment(),
    examination,
    servers: await Promise.all(metrics.map(askServer)),
    files: await Promise.all(include.map(endOf)),
  };
  const text = toJson(redactedValue(plain(document), secretsOf(options)), 1);
  const bytes = await promisify(gzip)(text);
  // A pipe or a device must not be replaced by a file.
  const isOther = await stat(file).then(
    (found) => !found.isFile(),
    () => false,
  );
  if (isOther) await writeFile(file, bytes);
  else await createFile(file, bytes, secretMode, () => rm(file, { force: true }));
}

/** The document as plain JSON, without values that have their own JSON form. */
const plain = (value: unknown): unknown => JSON.parse(toJson(value));

function machine(): object {
  const { arch, platform, versions } = process;
  const memory = { totalBytes: totalmem(), freeBytes: freemem() };
  const system = { platform, arch, release: release(), host: hostname(), uptimeSeconds: uptime() };
  return {
    node: versions.node,
    openssl: versions.openssl,
    ...system,
    memory,
    load: loadavg(),
    cpus: availableParallelism(),
  };
}

async function clocks(): Promise<object> {
  const [isSynchronized, slew] = await Promise.all([isClockSynchronized(), clockSlew()]);
  return {
    systemMs: Date.now(),
    steadyMs: Number(process.hrtime.bigint() / 1_000_000n),
    isSynchronized,
    slew,
  };
}

const ours = /^(?:LEASEHOLD|ETCD|NODE)_/;
/** Variables whose values are secret, whatever they look like. */
const secretVariable = /KEY(?!_FILE)|PASS|_AUTH$|SECRET|TOKEN|CREDENTIAL|_USER$/;

function environment(): object {
  const chosen = Object.entries(process.env).filter(([name]) => ours.test(name));
  return Object.fromEntries(
    chosen.map(([name, value]) => [name, secretVariable.test(name) && !isPath(name) ? "[removed]" : value]),
  );
}

/** Names of files are not secret. */
const isPath = (name: string): boolean => /_FILE$|TLS_KEY$/.test(name);

/** Texts that must not occur anywhere in the bundle. */
function secretsOf({ keyFile, tlsKey }: SharedOptions): string[] {
  const values = Object.entries(process.env).flatMap(([name, value = ""]) =>
    secretVariable.test(name) && !isPath(name) ? [value, ...value.split(":").slice(1)] : [],
  );
  return [...[keyFile, tlsKey].flatMap(wordsOf), ...values].filter((text) => text.length > 3);
}

/** The long words of a key file: hexadecimal digits, or lines of base64. */
function wordsOf(file: string | undefined): string[] {
  if (file === undefined) return [];
  try {
    return readFileSync(file, "utf8")
      .split(/[\s:]+/)
      .filter((word) => /^[\w+/=-]{16,}$/.test(word));
  } catch {
    return [];
  }
}

/** The metrics and health of a server, or the reason why they are missing. */
async function askServer(address: string): Promise<object> {
  const base = /^https?:/.test(address) ? address : `http://${address}`;
  const ask = async (path: string): Promise<string> => {
    try {
      const answer = await fetch(new URL(path, base), { signal: AbortSignal.timeout(fetchMsMax) });
      return `${answer.status}\n${(await answer.text()).slice(0, textBytesMax)}`;
    } catch (error) {
      return failureText(error);
    }
  };
  const [metrics, readyz] = await Promise.all([ask("/metrics"), ask("/readyz?verbose")]);
  return { address, readyz, metrics };
}

async function endOf(path: string): Promise<object> {
  try {
    const file = await open(path);
    try {
      const { size } = await file.stat();
      const bytes = Buffer.alloc(Math.min(size, textBytesMax));
      const { bytesRead } = await file.read(bytes, 0, bytes.length, size - bytes.length);
      const end = bytes.toString("utf8", 0, bytesRead);
      // The part of the line that was cut off may have contained the name that marks a secret.
      return { path, size, end: size > bytes.length ? end.slice(end.indexOf("\n") + 1) : end };
    } finally {
      await file.close();
    }
  } catch (error) {
    return { path, error: failureText(error) };
  }
}

function failureText(error: unknown): string {
  const { message, cause } = error as Error;
  return redacted(cause instanceof Error ? `${message}: ${cause.message}` : message);
}
