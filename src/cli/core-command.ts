import { Command } from "commander";
import { type Finish, examples } from "./command-help.js";

/** etcd's names, so that its command lines and unit files work here. */
const options = [
  ["--name <name>", "name of this server (default: default)"],
  ["--data-dir <path>", "where this server keeps its log and its snapshots (default: NAME.core)"],
  ["--listen-client-urls <urls>", "where clients are served (default: http://localhost:2379)"],
  ["--advertise-client-urls <urls>", "where clients find this server (default: where it listens)"],
  [
    "--listen-metrics-urls <urls>",
    "where /metrics and /health are served alone (default: nowhere; both are where clients are served)",
  ],
  ["--listen-peer-urls <urls>", "where the other servers are heard (default: http://localhost:2380)"],
  [
    "--initial-advertise-peer-urls <urls>",
    "where the other servers find this one (default: http://localhost:2380)",
  ],
  ["--initial-cluster <list>", "all servers, as name=url,name=url (default: this one alone)"],
  [
    "--initial-cluster-state <state>",
    "new, or existing for a server that was added to a core that runs (default: new)",
  ],
  [
    "--force-new-cluster",
    "make this server the only one of a new core, with what is on its disk: when the others are lost for good",
  ],
  [
    "--initial-cluster-token <token>",
    "tells clusters apart that have the same addresses (default: etcd-cluster)",
  ],
  ["--heartbeat-interval <ms>", "between heartbeats (default: 100)"],
  ["--election-timeout <ms>", "without heartbeats, until a new leader is elected (default: 1000)"],
  ["--snapshot-count <n>", "commands between snapshots (default: 100000)"],
  [
    "--auto-compaction-mode <mode>",
    "how old revisions are counted, revision or periodic (default: revision, or periodic if only a retention is given)",
  ],
  [
    "--auto-compaction-retention <amount>",
    "how many revisions, or hours, are kept; 0: all, until a client compacts (default: 100000 revisions)",
  ],
  [
    "--quota-backend-bytes <n>",
    "of keys, values and history in memory: what needs more is refused (default: half of the heap, 2 GB at most)",
  ],
  [
    "--auth-token <kind>",
    "simple, or jwt,sign-method=RS256,priv-key=FILE,pub-key=FILE,ttl=5m for signed ones (default: simple)",
  ],
  ["--auth-token-ttl <seconds>", "how long a simple token is good after its last use (default: 300)"],
  ["--cert-file <file>", "certificate for clients, PEM"],
  ["--key-file <file>", "its private key, PEM"],
  ["--trusted-ca-file <file>", "the authority of clients' certificates, PEM"],
  ["--client-cert-auth", "clients have to show a certificate"],
  ["--peer-cert-file <file>", "certificate for the other servers, PEM"],
  ["--peer-key-file <file>", "its private key, PEM"],
  ["--peer-trusted-ca-file <file>", "the authority of the servers' certificates, PEM"],
  ["--peer-client-cert-auth", "servers have to show a certificate to each other"],
  ["--insecure", "allow plain TCP beyond loopback"],
] as const;

export function addCore(program: Command, finish: Finish): void {
  const command = program
    .command("core")
    .description("run a server of a consistent core, for clients of etcd");
  for (const [flags, what] of options) command.option(flags, what);
  command
    .addHelpText(
      "after",
      examples(
        "leasehold core",
        "leasehold core --name a --data-dir /var/lib/core --listen-client-urls http://127.0.0.1:2379",
      ),
    )
    .action(async (own: Record<string, string | boolean>, self: Command) => {
      const { core } = await import("./commands/core.js");
      finish(await core({ ...own, ...keyFileOf(self.parent) }));
    });
  addBackups(command, finish);
}

/** What etcdctl does with etcd's own files, and cannot do with ours. */
function addBackups(core: Command, finish: Finish): void {
  core
    .command("restore <file>")
    .description("make the data directory of a server of a new core from a backup (etcdctl snapshot save)")
    .addHelpText("after", examples("leasehold core restore backup.db --name a --data-dir /var/lib/core"))
    .action(async (file: string) => {
      const { restore } = await import("./commands/core.js");
      finish(await restore(file, core.opts()));
    });
  core
    .command("snapshot")
    .description("look at a backup")
    .command("status <file>")
    .description("check a backup, and tell of which moment it is")
    .action(async (file: string, _own: unknown, self: Command) => {
      const { snapshotStatus } = await import("./commands/core.js");
      finish(await snapshotStatus(file, self.optsWithGlobals()["output"] === "json"));
    });
}

/**
 * The same words name the cluster key's file at every other command, so they are read as an option of all
 * commands.
 */
function keyFileOf(program: Command | null): { keyFile?: string } {
  const isGiven = program?.getOptionValueSource("keyFile") === "cli";
  return isGiven ? { keyFile: String(program.getOptionValue("keyFile")) } : {};
}
