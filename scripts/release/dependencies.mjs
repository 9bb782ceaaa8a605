// Notes on dependencies, for the maintainer to judge: newer versions and known vulnerabilities.
import { spawnSync } from "node:child_process";
import { root } from "./workspace.mjs";

export function notesOnDependencies() {
  return [...outdated(), ...audited()];
}

function outdated() {
  const found = jsonOf("outdated", "--workspaces");
  if (found === undefined)
    return ["\ndependencies were NOT compared with npm's registry: it gives no answer"];
  const lines = Object.entries(found).flatMap(([name, entries]) =>
    // Optional peers that are not installed have no current version.
    [entries]
      .flat()
      .flatMap(({ current, latest }) => (current === undefined ? [] : `  ${name} ${current}: ${latest}`)),
  );
  return lines.length === 0 ? ["\nall dependencies are current"] : ["\nnewer versions:", ...new Set(lines)];
}

function audited() {
  const found = jsonOf("audit", "--omit=dev");
  const { total } = found?.metadata?.vulnerabilities ?? {};
  if (total === undefined)
    return ["known vulnerabilities were NOT asked for: npm's registry gives no answer"];
  return [total === 0 ? "no known vulnerability" : `${total} known vulnerabilities: npm audit --omit=dev`];
}

/** npm exits with 1 if it has findings. */
function jsonOf(...words) {
  const { stdout } = spawnSync("npm", [...words, "--json"], { cwd: root, encoding: "utf8", timeout: 60_000 });
  try {
    const found = JSON.parse(stdout || "{}");
    return found.error === undefined ? found : undefined;
  } catch {
    return undefined;
  }
}
