import { execFileSync, spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Fresh Debian systems in directories, without a container engine: chroot, separate mounts, another user. */

export const repository = fileURLToPath(new URL("../..", import.meta.url));

export function run(command: string, words: readonly string[], cwd = repository): string {
  const { status, stdout, stderr } = spawnSync(command, words, { cwd, encoding: "utf8", timeout: 600_000 });
  if (status !== 0) throw new Error(`${command} ${words.join(" ")}: ${status}\n${stdout}\n${stderr}`);
  return stdout;
}

/** Created once for all tests, and kept for the next run, since that takes minutes. */
const base = join(tmpdir(), "leasehold-deploy-base.tar");

export class Root {
  readonly path = mkdtempSync(join(tmpdir(), "leasehold-root-"));

  constructor() {
    if (!existsSync("/usr/bin/mmdebstrap"))
      run("apt-get", ["install", "-y", "--no-install-recommends", "mmdebstrap"]);
    if (!existsSync(base)) run("mmdebstrap", ["--variant=minbase", "bookworm", base]);
    run("tar", ["-xf", base, "-C", this.path]);
  }

  /** Installs this machine's Node in the form of a Debian package. */
  installNode(): void {
    const stage = mkdtempSync(join(tmpdir(), "leasehold-node-"));
    mkdirSync(join(stage, "usr/bin"), { recursive: true });
    mkdirSync(join(stage, "DEBIAN"));
    cpSync(process.execPath, join(stage, "usr/bin/node"), { dereference: true });
    const control = `Package: nodejs\nVersion: ${process.versions.node}\nArchitecture: all\nMaintainer: none <none@leasehold.invalid>\nDescription: Node\n`;
    writeFileSync(join(stage, "DEBIAN/control"), control);
    run("chmod", ["-R", "go-w,a+rX", stage]);
    run("dpkg-deb", ["-Znone", "--root-owner-group", "--build", stage, join(this.path, "nodejs.deb")]);
    rmSync(stage, { recursive: true });
    this.run("dpkg -i /nodejs.deb");
  }

  run(script: string): string {
    return run("chroot", [this.path, "/bin/sh", "-ec", script]);
  }

  /**
   * Starts a command as this user, in a mount namespace of its own where everything is read-only except
   * `/tmp` and `writable`.
   */
  start(user: string, writable: string, words: readonly string[]) {
    const script = `
      mount --bind ${this.path} ${this.path}
      mount -t proc proc ${this.path}/proc
      mount -t tmpfs tmpfs ${this.path}/tmp
      mount --bind ${this.path}${writable} ${this.path}${writable}
      mount -o remount,bind,ro ${this.path}
      exec chroot --userspec=${user} ${this.path} "$@"`;
    const unshare = ["--mount", "sh", "-ec", script, "sh", "env", `HOME=${writable}`, ...words];
    const child = spawn("unshare", unshare, {
      stdio: ["ignore", "pipe", "pipe"],
      env: { PATH: process.env["PATH"] },
    });
    let output = "";
    const collect = (text: Buffer) => (output += String(text));
    child.stdout.on("data", collect);
    child.stderr.on("data", collect);
    const finished = new Promise<number | null>((resolve) => child.on("close", resolve));
    return { child, finished, output: () => output };
  }

  [Symbol.dispose](): void {
    execFileSync("rm", ["-rf", "--one-file-system", this.path]);
  }
}
