// Credentials for the measured cluster, created with the commands of docs/security.md.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The additional options of each member and the client. */
export function credentials(way) {
  if (way === "plain") return { member: () => ({}), client: {} };
  const folder = mkdtempSync(join(tmpdir(), "leasehold-bench-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  const run = (name) => {
    const text = readFileSync(new URL("../docs/security.md", import.meta.url), "utf8");
    const commands = new RegExp(`\`\`\`sh ${name}\n([^]*?)\n\`\`\``).exec(text)[1];
    execFileSync("sh", ["-eu", "-c", commands], { cwd: folder, stdio: "ignore" });
  };
  const file = (name) => join(folder, name);
  if (way === "key") {
    run("one-key");
    const keyFile = file("cluster.key");
    return { member: () => ({ keyFile }), client: { keyFile } };
  }
  if (way !== "certificates") throw new Error(`plain, certificates or key, and not ${way}`);
  run("certificates");
  const tls = (name) => ({
    tls: { ca: file("ca.pem"), cert: file(`${name}.pem`), key: file(`${name}.key`) },
  });
  return { member: tls, client: tls("client") };
}
