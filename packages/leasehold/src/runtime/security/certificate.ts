import type { X509Certificate } from "node:crypto";
import type { AuthFault } from "./auth-fault.js";
import type { Proof } from "./proof.js";
import { rolesWithin } from "./roles.js";
import { roles } from "./roles.js";
import type { Role } from "./roles.js";

/**
 * The owner of a certificate, from a URI among its subject alternative names:
 * `leasehold://CLUSTER/member/ID`, `leasehold://CLUSTER/client` or `leasehold://CLUSTER/observer`. CLUSTER
 * and ID are percent-encoded.
 */
const nameOfOurs = /^leasehold:\/\/([^/?#]+)\/(?:member\/([^/?#]+)|(client|observer))$/;

/** Reads the owner from a certificate. The TLS layer decides whether the certificate is trusted. */
export function proofOfCertificate(certificate: X509Certificate): Proof | AuthFault {
  const by = describeCertificate(certificate);
  if (certificate.ca) {
    return {
      cause: "certificate",
      text: `${by} is an authority's: its owner could make others, so it proves nothing`,
    };
  }
  const ours = urisOf(certificate.subjectAltName).filter((uri) => uri.startsWith("leasehold:"));
  if (ours.length !== 1) {
    const found = ours.length === 0 ? "no name of Leasehold" : "more than one name of Leasehold";
    return { cause: "certificate", text: `${by} has ${found} among its URIs; see docs/security.md` };
  }
  const proof = proofOfName(ours[0]!, by, certificate.subject ? by : certificate.fingerprint256);
  return (
    proof ?? {
      cause: "certificate",
      text: `${by} has the name ${ours[0]}, which says no role; see docs/security.md`,
    }
  );
}

function proofOfName(uri: string, by: string, account: string): Proof | undefined {
  const match = nameOfOurs.exec(uri);
  if (match === null) return undefined;
  try {
    const cluster = decodeURIComponent(match[1]!);
    if (match[2] !== undefined)
      return { roles, cluster, memberId: decodeURIComponent(match[2]), by, account };
    return { roles: rolesWithin(match[3] as Role), cluster, by, account };
  } catch {
    // The text is not percent-encoded UTF-8.
    return undefined;
  }
}

/** `the certificate of CN=a`: one line, with the subject quoted because its content is untrusted. */
export function describeCertificate(certificate: X509Certificate): string {
  return `the certificate ${JSON.stringify((certificate.subject ?? "").replaceAll("\n", ", ").slice(0, 200))}`;
}

/** A subject alternative name. `kind` is Node's word for it, such as `DNS` or `IP Address`. */
export interface AltName {
  readonly kind: string;
  readonly value: string;
}

/**
 * The names in Node's text form of the extension, `DNS:a, URI:b`. Node quotes a value as JSON if it could be
 * mistaken for several names; such a value stays quoted.
 */
export function altNamesOf(subjectAltName: string | undefined): AltName[] {
  const entry = /(?:^|, )([A-Za-z ]+):("(?:[^"\\]|\\.)*"|[^,]*)/gy;
  return [...(subjectAltName ?? "").matchAll(entry)].map(([, kind, value]) => ({
    kind: kind!,
    value: value!,
  }));
}

/** The URIs among them. Quoted ones are ignored. */
export function urisOf(subjectAltName: string | undefined): string[] {
  return altNamesOf(subjectAltName)
    .filter(({ kind, value }) => kind === "URI" && !value.startsWith('"'))
    .map(({ value }) => value);
}
