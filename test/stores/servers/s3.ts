import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { freePorts } from "../../free-ports.js";
import { findProgram, makeDirectory, removeDirectory, run, ServerProcess } from "./process.js";

export const accessKeyId = "LEASEHOLDTEST0000001";
export const secretAccessKey = "not-a-secret-of-anybody-4711";

const fsid = "066ae264-2a5d-4729-8001-6ad265f50b03";
const osdId = "8f9bd7c5-6a3e-4a28-9c56-5bd6f4d9a1c7";

interface Ports {
  readonly monitor: number;
  readonly gateway: number;
}

/** The smallest Ceph that radosgw runs on: one monitor and one object store in memory. */
function configuration(directory: string, ports: Ports): string {
  return `[global]
fsid = ${fsid}
run dir = ${directory}
admin socket =
pid file =
log file =
keyring = ${directory}/keyring
mon host = [v2:127.0.0.1:${ports.monitor}]
mon initial members = a
mon data = ${directory}/mon
mon data avail crit = 1
mon allow pool size one = true
mon max pg per osd = 1000
public addr = 127.0.0.1
cluster addr = 127.0.0.1
osd data = ${directory}/osd
osd objectstore = memstore
memstore device bytes = 268435456
osd crush chooseleaf type = 0
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 2
osd pool default pgp num = 2
osd pool default pg autoscale mode = off
rgw data = ${directory}/rgw
rgw frontends = beast endpoint=127.0.0.1:${ports.gateway} tcp_nodelay=1
rgw thread pool size = 64
rgw run sync thread = false
`;
}

/** A real S3 server that honours conditional writes: Ceph's radosgw. It takes about ten seconds to start. */
export class S3Server {
  readonly #directory: string;
  readonly #ports: Ports;
  readonly #processes: ServerProcess[] = [];
  #gateway: ServerProcess | undefined;

  private constructor(directory: string, ports: Ports) {
    this.#directory = directory;
    this.#ports = ports;
  }

  static async start(): Promise<S3Server> {
    const [monitor, gateway] = (await freePorts(2)) as [number, number];
    const server = new S3Server(await makeDirectory("s3"), { monitor, gateway });
    try {
      await server.#startCluster();
      await server.user("leasehold", accessKeyId, secretAccessKey);
      await server.restart();
      return server;
    } catch (error) {
      await server.close();
      throw error;
    }
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.#ports.gateway}`;
  }

  url(bucket: string, prefix = ""): URL {
    return new URL(`s3://${bucket}/${prefix}?endpoint=${this.endpoint}`);
  }

  async user(name: string, key: string, secret: string, ...more: string[]): Promise<void> {
    const keys = [`--access-key=${key}`, `--secret-key=${secret}`];
    await this.admin("user", "create", `--uid=${name}`, `--display-name=${name}`, ...keys, ...more);
  }

  async admin(...args: string[]): Promise<string> {
    return run(findProgram(["/usr/bin/radosgw-admin"], "radosgw"), ["-c", this.#file("ceph.conf"), ...args]);
  }

  /** Restarts the gateway only; its data stays. */
  async restart(): Promise<void> {
    await this.kill();
    this.#gateway = this.#start("radosgw", "radosgw", "-n", "client.admin");
    await this.#gateway.ready(async () => (await fetch(this.endpoint)).ok);
  }

  freeze(): void {
    this.#gateway?.freeze();
  }

  thaw(): void {
    this.#gateway?.thaw();
  }

  async kill(): Promise<void> {
    await this.#gateway?.stop();
  }

  async close(): Promise<void> {
    await this.kill();
    for (const process of this.#processes.toReversed()) await process.stop();
    await removeDirectory(this.#directory);
  }

  async #startCluster(): Promise<void> {
    await writeFile(this.#file("ceph.conf"), configuration(this.#directory, this.#ports));
    for (const folder of ["mon", "osd", "rgw"]) await mkdir(this.#file(folder));
    const [keyring, monmap, conf] = [this.#file("keyring"), this.#file("monmap"), this.#file("ceph.conf")];
    const all = (...kinds: string[]) => kinds.flatMap((kind) => ["--cap", kind, "allow *"]);
    const make = findProgram(["/usr/bin/ceph-authtool"], "ceph-common");
    await run(make, ["--create-keyring", keyring, "--gen-key", "-n", "mon.", ...all("mon")]);
    await run(make, [keyring, "--gen-key", "-n", "client.admin", ...all("mon", "osd", "mgr")]);
    await run(make, [keyring, "--gen-key", "-n", "osd.0", ...all("mon", "osd")]);
    const place = `[v2:127.0.0.1:${this.#ports.monitor}]`;
    await run("/usr/bin/monmaptool", ["--create", "--fsid", fsid, "--addv", "a", place, monmap]);
    const monitor = findProgram(["/usr/bin/ceph-mon"], "ceph-mon");
    await run(monitor, ["-c", conf, "--mkfs", "-i", "a", "--monmap", monmap, "--keyring", keyring]);
    this.#processes.push(this.#start("ceph-mon", "ceph-mon", "-i", "a"));
    await run("/usr/bin/ceph", ["-c", conf, "--connect-timeout", "30", "osd", "new", osdId]);
    const osd = findProgram(["/usr/bin/ceph-osd"], "ceph-osd");
    await run(osd, ["-c", conf, "-i", "0", "--mkfs", "--osd-uuid", osdId]);
    this.#processes.push(this.#start("ceph-osd", "ceph-osd", "-i", "0"));
  }

  #start(program: string, debianPackage: string, ...args: string[]): ServerProcess {
    const command = findProgram([`/usr/bin/${program}`], debianPackage);
    return new ServerProcess(command, ["-c", this.#file("ceph.conf"), "-f", ...args]);
  }

  #file(name: string): string {
    return join(this.#directory, name);
  }
}
