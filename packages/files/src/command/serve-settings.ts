import type { MemberOptions } from "leasehold";
import { type LogFlags, addressesOf, checkMember, configFailure, securityOf } from "leasehold/cli";
import { parseDuration } from "leasehold/common";
import { type FilesOptions, userOf } from "./settings.js";

export interface ServeOptions extends FilesOptions, LogFlags {
  readonly id?: string;
  readonly dir?: string;
  readonly node?: readonly string[];
  readonly member?: readonly string[];
  readonly join?: boolean;
  readonly rebalanceRate?: number;
  readonly http?: string;
  readonly s3?: string;
  readonly httpCert?: string;
  readonly httpKey?: string;
  readonly users?: string;
  readonly blockSize?: number;
  readonly ttlMax?: string;
  readonly maxClockSkew?: string;
  readonly metricsAddress?: string;
}

export interface ServeSettings {
  readonly id: string;
  readonly dir: string;
  readonly nodes: Readonly<Record<string, string>>;
  readonly members: Readonly<Record<string, string>>;
  readonly memberOptions: MemberOptions;
  /** `NAME:PASSWORD` required of clients. */
  readonly credentials: string | undefined;
}

/** @throws CommandFailure for settings that do not fit together */
export function serveSettingsOf(options: ServeOptions): ServeSettings {
  const { id, dir, users } = options;
  const credentials = userOf(options);
  if (credentials !== undefined && users !== undefined)
    throw configFailure(
      "CONFIG_CONFLICT",
      "--user (LEASEHOLD_FILES_USER, --user-file) and --users exclude each other",
    );
  // Checking a signature takes the password itself, and that file has only its hash.
  if (options.s3 !== undefined && users !== undefined)
    throw configFailure(
      "CONFIG_CONFLICT",
      "--s3 needs the one user of --user (LEASEHOLD_FILES_USER) or --user-file, and not --users",
    );
  if (id === undefined || dir === undefined)
    throw configFailure("CONFIG_MISSING", "a node needs --id and --dir");
  const [nodes, members] = [listOf(options.node, "--node"), listOf(options.member, "--member")];
  certificateOf(options);
  const memberOptions = {
    id,
    members,
    ...(options.cluster !== undefined && { cluster: options.cluster }),
    ...(options.ttlMax !== undefined && { ttlMax: parseDuration(options.ttlMax, "--ttl-max") }),
    ...(options.maxClockSkew !== undefined && {
      maxClockSkew: parseDuration(options.maxClockSkew, "--max-clock-skew"),
    }),
    ...securityOf(options),
  };
  return { id, dir, nodes, members, memberOptions, credentials };
}

/** Whether `leasehold files serve` can start with these options. */
export async function checkServe(options: ServeOptions): Promise<void> {
  const { id, members, memberOptions } = serveSettingsOf(options);
  if (Object.hasOwn(members, id)) await checkMember(memberOptions);
}

/** `a=host:port`, given once per node. */
function listOf(given: readonly string[] | undefined, option: string): Record<string, string> {
  if (given === undefined)
    throw configFailure("CONFIG_MISSING", `${option} is missing: give it once for each node`);
  return addressesOf(given, option);
}

/** The certificate for WebDAV clients: their own, or else the one that the node shows to members. */
export function certificateOf({ httpCert, httpKey, tlsCert, tlsKey }: ServeOptions) {
  if ((httpCert === undefined) !== (httpKey === undefined))
    throw configFailure("CONFIG_CONFLICT", "--http-cert and --http-key are needed together");
  if (httpCert !== undefined && httpKey !== undefined) return { cert: httpCert, key: httpKey };
  return tlsCert === undefined || tlsKey === undefined ? undefined : { cert: tlsCert, key: tlsKey };
}
