import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Runs a command and returns its standard output. Rejects with all of its output if it fails. */
export async function run(
  folder: string,
  command: string,
  words: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<string> {
  const env = { ...process.env, NODE_ENV: "production", NO_COLOR: "1", FORCE_COLOR: "0", ...environment };
  try {
    const { stdout } = await promisify(execFile)(command, words, { cwd: folder, env });
    return stdout;
  } catch (error) {
    const { message, stdout = "", stderr = "" } = error as Error & { stdout?: string; stderr?: string };
    throw new Error([message, stdout, stderr].join("\n"), { cause: error });
  }
}

/** The path of a package's command. */
export function tool(folder: string, name: string): string {
  return join(folder, "node_modules", ".bin", name);
}

/**
 * Packs the built repository into a new folder. If `LEASEHOLD_PACKED` is set, it names a file that is already
 * packed.
 */
export async function pack(): Promise<{ folder: string; tarball: string }> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "leasehold-packaged-")));
  const packed = process.env["LEASEHOLD_PACKED"];
  if (packed !== undefined) return { folder, tarball: packed };
  const words = ["pack", "--json", "--ignore-scripts", "--pack-destination", folder];
  const [report] = JSON.parse(await run(join(root, "packages", "leasehold"), "npm", words)) as [
    { filename: string },
  ];
  return { folder, tarball: join(folder, report.filename) };
}

/** Creates a project in a new subfolder, with these packages in addition to those of its `package.json`. */
export async function install(folder: string, name: string, packages: readonly string[]): Promise<string> {
  const at = join(folder, name);
  cpSync(fileURLToPath(new URL(name, import.meta.url)), at, { recursive: true });
  await add(at, packages);
  return at;
}

/** Installs packages in a project. Retries once if the registry fails. */
export async function add(at: string, packages: readonly string[]): Promise<void> {
  const quiet = ["--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund", "--no-package-lock"];
  const words = ["install", ...quiet, ...packages];
  await run(at, "npm", words).catch(() => run(at, "npm", words));
}
