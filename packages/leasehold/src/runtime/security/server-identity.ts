import { X509Certificate } from "node:crypto";
import { isIPv6 } from "node:net";
import { type PeerCertificate, checkServerIdentity } from "node:tls";

/**
 * Why a certificate is not that of a host: as Node has it, and right for IPv6 as well. Node 22.23 finds no
 * such address in any certificate.
 */
export function identityProblem(host: string, shown: PeerCertificate): Error | undefined {
  const problem = checkServerIdentity(host, shown);
  if (problem === undefined || !isIPv6(host)) return problem;
  // Its zone belongs to this machine, and stands in no certificate.
  const address = host.replace(/%.*$/, "");
  return new X509Certificate(shown.raw).checkIP(address) === undefined ? problem : undefined;
}
