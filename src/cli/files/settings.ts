import { parseDuration } from "../../lease/duration.js";
import { usageError } from "../common/failure.js";
import { type OutputFormat, type SharedOptions } from "../common/settings.js";
import { Nodes, localNodes } from "./nodes.js";

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
  return { nodes: new Nodes(urls, timeoutMs, options.user), output: options.output ?? "table" };
}

/** The path of a file as nodes have it: a slash at its beginning is a habit, and no part of the name. */
export function remotePath(text: string): string {
  const path = text.replace(/^\/+/, "");
  if (path === "" || path.endsWith("/")) throw usageError(`${JSON.stringify(text)} is no path of a file`);
  return path;
}
