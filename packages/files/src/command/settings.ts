import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import type { PeerCertificate } from "node:tls";
import { parseDuration } from "leasehold/common";
import { proofOfCertificate, unprovenClaim, identityProblem } from "leasehold/runtime";
import { usageError, type OutputFormat, type SharedOptions } from "leasehold/cli";
import { Nodes, type Trust, localNodes } from "./nodes.js";

/** As long as a lease of the primary that was lost may have to run, and then some. */
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

/** With an authority of one's own, what has a member's certificate is a node, whatever it is called. */
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

/** The path of a file as nodes have it: a slash at its beginning is a habit, and no part of the name. */
export function remotePath(text: string): string {
  const path = text.replace(/^\/+/, "");
  if (path === "" || path.endsWith("/")) throw usageError(`${JSON.stringify(text)} is no path of a file`);
  return path;
}
