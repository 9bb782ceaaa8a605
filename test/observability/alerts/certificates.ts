import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect } from "vitest";
import { dist } from "../../support/built.js";
import type { Troubles } from "./troubles.js";

export const certificatePorts = 9;

export const certificateTargets = (at: readonly string[]): string[] => at.slice(0, 3);

/** A member, a server of a core and a node of files, each with certificates of one CA. */
export async function troubleCertificates(troubles: Troubles, at: readonly string[]): Promise<void> {
  const { scraped } = troubles;
  const pki = join(scraped.folder, "pki");
  const cert = (step: string, ...words: readonly string[]): void => {
    execFileSync(process.execPath, [join(dist, "cli/main.js"), "cert", step, pki, ...words]);
  };
  cert("authority");
  cert("member", "a");
  cert("core-server", "s", "--host", "127.0.0.1");
  const own = ["tls-ca", "tls-cert", "tls-key"].flatMap((flag, index) => [
    `--${flag}`,
    join(pki, ["ca.pem", "a.pem", "a.key"][index]!),
  ]);
  scraped.leasehold(["peer", "--id", "a", "--member", `a=${at[3]}`, "--metrics-address", at[0]!], own);
  const [client, peer] = [`https://${at[4]}`, `http://${at[5]}`];
  scraped.leasehold(
    ["core", "--name", "s", "--data-dir", join(scraped.folder, "core-s"), "--initial-cluster", `s=${peer}`],
    ["--listen-client-urls", client, "--advertise-client-urls", client],
    ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer],
    ["--cert-file", join(pki, "s.pem"), "--key-file", join(pki, "s.key")],
    ["--listen-metrics-urls", `http://${at[1]}`],
  );
  scraped.leasehold(
    ["files", "serve", "--id", "a", "--dir", join(scraped.folder, "files-a"), "--node", `a=${at[6]}`],
    ["--member", `a=${at[7]}`, "--http", at[8]!, "--metrics-address", at[2]!],
    own,
  );
  const ends = 'leasehold_certificate_expiry_time_seconds{job="certificates"}';
  expect(await scraped.settled(`count(count by (instance) (${ends}))`, 3)).toBe(3);

  await troubles.happen({
    alerts: { CertificateExpiresSoon: "" },
    made: "certificates end in ten days",
    ended: "`leasehold cert renew`",
    make: () => cert("renew", "--all", "--days", "10"),
    look: async () => {
      const firing = 'count(count by (instance) (ALERTS{alertname="CertificateExpiresSoon"}))';
      expect(await scraped.settled(firing, 3)).toBe(3);
    },
    mend: () => cert("renew"),
  });
}
