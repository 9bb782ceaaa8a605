import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import type { PeerCertificate } from "node:tls";
import { parseDuration } from "leasehold/common";
import { proofOfCertificate, unprovenClaim, identityProblem } from "leasehold/runtime";
import { usageError, type OutputFormat, type SharedOptions } from "leasehold/cli";
import { Nodes, type Trust, localNodes } from "./nodes.js";

/** A lost primary's lease may have to expire first; the default leaves room for that. */
export const filesTimeoutDefault = "30s";

export interface FilesOptions extends SharedOptions {
  readonly nodes?: readonly string[];
  readonly user?: string;
}

export interface FilesSettings {
  readonly nodes: Nodes;
  readonly output: OutputFormat;
}

export function filesSettingsOf(options: FilesOptions): FilesSettings {
  const urls = options.nodes ?? localNodes;
  if (urls.length === 0) throw usageError("--nodes names nothing; give at least one http://host:port");
  if (options.user !== undefined && !options.user.includes(":")) throw usageError("--user is NAME:PASSWORD");
  const timeoutMs = parseDuration(options.timeout ?? filesTimeoutDefault, "--timeout");
  return {
    nodes: new Nodes(urls, timeoutMs, options.user, trustOf(urls, options)),
    output: options.output ?? "table",
  };
}

/** With `--tls-ca`, any certificate of a member is trusted as a node's, whatever its host name. */
function trustOf(urls: readonly string[], { tlsCa, cluster = "leasehold" }: FilesOptions): Trust {
  if (!urls.some((url) => /^https:/i.test(url))) return {};
  if (tlsCa === undefined) return { checkServerIdentity: identityProblem };
  return { ca: readAuthority(tlsCa), checkServerIdentity: memberOrHost(cluster) };
}

function readAuthority(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw usageError(`${path} cannot be read: ${(error as NodeJS.ErrnoException).code}`);
  }
}

function memberOrHost(cluster: string) {
  return (host: string, shown: PeerCertificate): Error | undefined => {
    const proof = proofOfCertificate(new X509Certificate(shown.raw));
    const isMember = !("cause" in proof) && unprovenClaim(proof, { role: "member", cluster }) === undefined;
    return isMember ? undefined : identityProblem(host, shown);
  };
}

/** The path of a file as nodes know it, without the slash that users put first. */
export function remotePath(text: string): string {
  const path = text.replace(/^\/+/, "");
  if (path === "" || path.endsWith("/")) throw usageError(`${JSON.stringify(text)} is not a path of a file`);
  return path;
}
