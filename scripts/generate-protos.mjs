// Generates packages/leasehold/src/etcd/gen from the .proto files beside it, with pinned versions of the
// tools in a folder of their own. Only a change of the protocol needs them; a build does not.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

const tools = ["@bufbuild/buf@1.75.0", "@bufbuild/protoc-gen-es@2.13.0"];
const protos = fileURLToPath(new URL("../packages/leasehold/src/etcd/proto", import.meta.url));

const folder = mkdtempSync(join(tmpdir(), "leasehold-generate-"));
try {
  execFileSync("npm", ["install", "--silent", "--prefix", folder, ...tools], { stdio: "inherit" });
  const path = `${join(folder, "node_modules", ".bin")}${delimiter}${process.env.PATH}`;
  execFileSync("buf", ["generate"], { cwd: protos, stdio: "inherit", env: { ...process.env, PATH: path } });
  withoutSwitches(join(protos, "..", "gen"));
} finally {
  rmSync(folder, { recursive: true });
}

/** Removes the comments that switch the linter off: the linter's settings already exclude the folder. */
function withoutSwitches(path) {
  for (const entry of readdirSync(path, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = join(entry.parentPath, entry.name);
    writeFileSync(file, readFileSync(file, "utf8").replace(/^\/\* eslint-\S+ \*\/\n/m, ""));
  }
}
