import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import type { PeerCertificate } from "node:tls";
import { parseDuration } from "leasehold/common";
import { proofOfCertificate, unprovenClaim, identityProblem } from "leasehold/runtime";
import { configFailure, usageError, type OutputFormat, type SharedOptions } from "leasehold/cli";
import { Nodes, type Trust, localNodes } from "./nodes.js";

/** The lease of a lost primary may have to expire first. The default leaves time for that. */
export const filesTimeoutDefault = "30s";

export interface FilesOptions extends SharedOptions {
  readonly nodes?: readonly string[];
  readonly user?: string;
  readonly userFile?: string;
}

export interface FilesSettings {
  readonly nodes: Nodes;
  readonly output: OutputFormat;
}

export function filesSettingsOf(options: FilesOptions): FilesSettings {
  const urls = options.nodes ?? localNodes;
  if (urls.length === 0) throw usageError("--nodes names nothing; give at least one http://host:port");
  const user = userOf(options);
  const timeoutMs = parseDuration(options.timeout ?? filesTimeoutDefault, "--timeout");
  return {
    nodes: new Nodes(urls, timeoutMs, user, trustOf(urls, options)),
    output: options.output ?? "table",
  };
}

/** `NAME:PASSWORD`, from `--user` or the first line of `--user-file`. */
export function userOf({ user, userFile }: FilesOptions): string | undefined {
  if (user !== undefined && userFile !== undefined)
    throw configFailure(
      "CONFIG_CONFLICT",
      "--user (LEASEHOLD_FILES_USER) and --user-file exclude each other",
    );
  const given = userFile === undefined ? user : readText(userFile).split(/\r?\n/, 1)[0]!;
  const where = userFile === undefined ? "--user" : `the first line of ${userFile}`;
  if (given !== undefined && !given.includes(":"))
    throw configFailure("CONFIG_VALUE", `${where} is NAME:PASSWORD`);
  return given;
}

/** With `--tls-ca`, any member's certificate is trusted for a node, whatever its host name. */
function trustOf(urls: readonly string[], { tlsCa, cluster = "leasehold" }: FilesOptions): Trust {
  if (!urls.some((url) => /^https:/i.test(url))) return {};
  if (tlsCa === undefined) return { checkServerIdentity: identityProblem };
  return { ca: readText(tlsCa), checkServerIdentity: memberOrHost(cluster) };
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw configFailure("CONFIG_UNREADABLE", `${path} cannot be read: ${code}`);
  }
}

function memberOrHost(cluster: string) {
  return (host: string, shown: PeerCertificate): Error | undefined => {
    const proof = proofOfCertificate(new X509Certificate(shown.raw));
    const isMember = !("cause" in proof) && unprovenClaim(proof, { role: "member", cluster }) === undefined;
    return isMember ? undefined : identityProblem(host, shown);
  };
}

/** A file's path as nodes know it, without the leading slash that users may type. */
export function remotePath(text: string): string {
  const path = text.replace(/^\/+/, "");
  if (path === "" || path.endsWith("/")) throw usageError(`${JSON.stringify(text)} is not a path of a file`);
  return path;
}
