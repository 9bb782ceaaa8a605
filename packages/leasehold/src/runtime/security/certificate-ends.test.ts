import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Authority } from "../../../../../test/support/pki.js";
import { createMetrics } from "../../entry/metrics.js";
import { silent } from "../logger.js";
import { certificateEnds } from "./certificate-ends.js";
import { watchCertificate } from "./served-certificate.js";

test("a chain ends with its first certificate, authorities with their last, and metrics show both while served", async () => {
  const authority = new Authority();
  try {
    const soon = authority.issue([], { toDays: 10 });
    const later = authority.issue([], { toDays: 20 });
    const text = (file: string) => readFileSync(file, "utf8");
    const both = join(authority.folder, "both.pem");
    writeFileSync(both, text(later.cert) + text(soon.cert));
    const inDays = (ms: number) => Math.round((ms - Date.now()) / 86_400_000);
    const files = { cert: both, ca: both };
    const ends = certificateEnds(files, { cert: text(both), ca: text(both) });
    expect(ends.map(([file, ms]) => [file, inDays(ms)])).toEqual([
      [both, 10],
      [both, 20],
    ]);
    expect(certificateEnds({ cert: text(both) }, { cert: text(both) })).toEqual([]);
    expect(certificateEnds({ cert: both }, { cert: "nothing" })).toEqual([]);

    const metrics = createMetrics();
    const stop = metrics.observeProcess();
    const served = await watchCertificate({ cert: soon.cert, key: soon.key }, silent);
    const series = `leasehold_certificate_expiry_time_seconds{file="${soon.cert}"} `;
    const shown = metrics
      .text()
      .split("\n")
      .find((line) => line.startsWith(series));
    expect(inDays(Number(shown?.slice(series.length)) * 1_000)).toBe(10);
    served.close();
    expect(metrics.text()).not.toContain(series);
    stop();
  } finally {
    authority.remove();
  }
});
