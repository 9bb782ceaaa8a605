import { isIP } from "node:net";
import type { X509Certificate } from "node:crypto";
import { altNamesOf, proofOfCertificate } from "../../../runtime/security/certificate.js";
import { certFailure } from "./failure.js";

/** The parts in which one authority's certificates differ. */
export interface Profile {
  readonly commonName: string;
  /** The owner's role among peers; absent in a core's certificates. */
  readonly uri?: string | undefined;
  /** Names and addresses at which the owner can be reached. */
  readonly hosts: readonly string[];
  readonly usages: readonly Usage[];
}

const usageIds = { serverAuth: "1.3.6.1.5.5.7.3.1", clientAuth: "1.3.6.1.5.5.7.3.2" } as const;
export type Usage = keyof typeof usageIds;

/**
 * The kinds of certificates. A core treats the common name of a client's certificate as the user. So only a
 * user's certificate has a plain name, and no other certificate of the authority can be mistaken for a
 * user's.
 */
export const kinds = {
  member: {
    who: "a member of a cluster of peers, or a node of files",
    name: "the member's id",
    usages: ["serverAuth", "clientAuth"],
    hosts: "optional",
    path: (name: string) => `member/${encodeURIComponent(name)}`,
  },
  client: {
    who: "a client of a cluster of peers",
    name: "a name for it",
    usages: ["clientAuth"],
    hosts: "none",
    path: () => "client",
  },
  observer: {
    who: "an observer, which takes no leases",
    name: "a name for it",
    usages: ["clientAuth"],
    hosts: "none",
    path: () => "observer",
  },
  "core-server": {
    who: "a core's server, for its client port",
    name: "the server's name",
    usages: ["serverAuth"],
    hosts: "needed",
    path: undefined,
  },
  "core-peer": {
    who: "a core's server, for its peer port",
    name: "the server's name",
    usages: ["serverAuth", "clientAuth"],
    hosts: "needed",
    path: undefined,
  },
  "core-user": {
    who: "a client of a core, or its user",
    name: "the user's name",
    usages: ["clientAuth"],
    hosts: "none",
    path: undefined,
  },
} as const satisfies Record<string, Kind>;

interface Kind {
  readonly who: string;
  readonly name: string;
  readonly usages: readonly Usage[];
  readonly hosts: "none" | "optional" | "needed";
  /** The path of the certificate's URI. */
  readonly path: ((name: string) => string) | undefined;
}

export type KindName = keyof typeof kinds;

/**
 * Names that are safe in a file name, an `openssl` configuration and a common name (at most 64 characters).
 */
const plainName = /^[A-Za-z0-9][\w.@-]{0,49}$/;
/** Names of the authority's own files. */
const ownFiles = new Set(["ca", "ca-next", "ca-old"]);
const hostsMax = 100;

/** @throws CommandFailure `CERT_NAME` */
export function profileOf(
  kind: KindName,
  name: string,
  cluster: string,
  hosts: readonly string[] = [],
): Profile {
  const { path, usages, hosts: wanted } = kinds[kind];
  if (!plainName.test(name) || ownFiles.has(name))
    throw certFailure(
      "CERT_NAME",
      `${JSON.stringify(name)} cannot be a certificate's name: 1 to 50 letters, digits and . _ @ -, first a letter or digit, and not ${[...ownFiles].join(", ")}`,
    );
  const wrong = hosts.find((host) => !isHost(host));
  if (wrong !== undefined)
    throw certFailure("CERT_NAME", `${JSON.stringify(wrong)} is no host name and no address`);
  if (hosts.length > hostsMax) throw certFailure("CERT_NAME", `there are more than ${hostsMax} hosts`);
  if (wanted === "needed" && hosts.length === 0)
    throw certFailure("CERT_NAME", `clients compare the hosts in a ${kind}'s certificate: give --host`);
  return {
    commonName: kind === "core-user" ? name : `${kind}/${name}`,
    uri: path && `${clusterUri(cluster)}${path(name)}`,
    hosts,
    usages,
  };
}

/**
 * In the form that {@link proofOfCertificate} reads. Also encodes characters that are special in an `openssl`
 * configuration.
 */
export function clusterUri(cluster: string): string {
  const bytes = Buffer.byteLength(cluster);
  if (bytes === 0 || bytes > 128) throw certFailure("CERT_NAME", "a cluster's name has 1 to 128 bytes");
  return `leasehold://${encodeURIComponent(cluster).replaceAll("'", "%27")}/`;
}

function isHost(text: string): boolean {
  if (isIP(text) !== 0) return !text.includes("%");
  return (
    text.length <= 253 && /^(?:\*\.)?(?:[A-Za-z0-9](?:[\w-]{0,62})\.)*[A-Za-z0-9][\w-]{0,62}$/.test(text)
  );
}

/**
 * The profile of a certificate that is to be renewed.
 *
 * @throws CommandFailure `CERT_UNREADABLE` if the certificate contains more than a {@link Profile}
 */
export function profileIn(certificate: X509Certificate, path: string): Profile {
  const commonName = /^CN=(.*)$/.exec(certificate.subject ?? "")?.[1];
  const names = altNamesOf(certificate.subjectAltName);
  const uris = names.flatMap(({ kind, value }) => (kind === "URI" ? [value] : []));
  const hosts = names.flatMap(({ kind, value }) => (kind === "DNS" || kind === "IP Address" ? [value] : []));
  const usages = (Object.keys(usageIds) as Usage[]).filter((usage) =>
    certificate.keyUsage?.includes(usageIds[usage]),
  );
  const isOurs =
    commonName !== undefined &&
    /^[\w./@-]{1,64}$/.test(commonName) &&
    uris.length <= 1 &&
    uris.every((uri) => /^leasehold:[\w.~!*()%/-]+$/.test(uri)) &&
    hosts.every(isHost) &&
    uris.length + hosts.length === names.length &&
    usages.length > 0 &&
    usages.length === certificate.keyUsage.length;
  if (!isOurs)
    throw certFailure(
      "CERT_UNREADABLE",
      `${path} is no certificate that leasehold cert makes; issue it anew`,
    );
  return { commonName, uri: uris[0], hosts, usages };
}

/** The owner of a certificate, for people. */
export function ownerOf(certificate: X509Certificate): string {
  const subject = (certificate.subject ?? "").replaceAll("\n", ", ");
  const [, commonName = subject] = /^CN=([^,]*)$/.exec(subject) ?? [];
  if (certificate.ca) return `authority ${commonName}`;
  const proof = proofOfCertificate(certificate);
  if (!("cause" in proof)) {
    const role = proof.memberId === undefined ? proof.roles[0]! : `member ${proof.memberId}`;
    return `${role} of ${proof.cluster ?? ""}`;
  }
  const [, kind, name] = /^(core-server|core-peer)\/(.+)$/.exec(commonName) ?? [];
  return kind === undefined ? `core-user ${commonName}` : `${kind} ${name}`;
}
