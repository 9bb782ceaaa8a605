import { X509Certificate } from "node:crypto";
import { isIPv6 } from "node:net";
import { type PeerCertificate, checkServerIdentity } from "node:tls";

/**
 * Why a certificate does not match a host. As Node's check, but correct for IPv6: Node 22.23 finds no IPv6
 * address in any certificate.
 */
export function identityProblem(host: string, certificate: PeerCertificate): Error | undefined {
  const problem = checkServerIdentity(host, certificate);
  if (problem === undefined || !isIPv6(host)) return problem;
  // The zone has a meaning only on this machine, so no certificate contains it.
  const address = host.replace(/%.*$/, "");
  return new X509Certificate(certificate.raw).checkIP(address) === undefined ? problem : undefined;
}
