import { Command, Option, type Finish, examples, printError } from "leasehold/cli";
import { type CoreSettings, coreSettings, experimentalIn, foreign, type Given } from "./core-settings.js";

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
    "--force-new-cluster [bool]",
    "make this server the only one of a new core, with what is on its disk: when the others are lost for good",
  ],
  [
    "--initial-cluster-token <token>",
    "tells clusters apart that have the same addresses (default: etcd-cluster)",
  ],
  ["--heartbeat-interval <ms>", "between heartbeats (default: 100)"],
  [
    "--election-timeout <ms>",
    "without heartbeats, until a new leader is elected; the same at all servers (default: 1000)",
  ],
  ["--snapshot-count <n>", "commands between snapshots (default: 100000)"],
  [
    "--experimental-initial-corrupt-check [bool]",
    "serve no client before the keys were found to be those of the other servers",
  ],
  [
    "--experimental-corrupt-check-time <duration>",
    "how often the leader compares the keys of all servers, from 1s on; 0s: never (default: 0s)",
  ],
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
  ["--max-txn-ops <n>", "operations of one transaction, 1024 at most (default: 128)"],
  ["--max-request-bytes <n>", "of one request (default: 1572864)"],
  ["--max-concurrent-streams <n>", "calls of one connection at once (default: 16384)"],
  ["--log-level <level>", "debug, info, warn or error: from which on lines are written (default: info)"],
  ["--log-format <format>", "text (console) or json: an object a line (default: text)"],
  ["--log-outputs <list>", "default (warnings and errors apart), stdout, stderr or files (default: default)"],
  ["--config-file <file>", "all settings in etcd's form, YAML"],
  [
    "--auto-tls [bool]",
    "make a certificate for clients, which they cannot verify, and keep it in the data directory",
  ],
  ["--cert-file <file>", "certificate for clients, PEM"],
  ["--key-file <file>", "its private key, PEM"],
  ["--trusted-ca-file <file>", "clients have to show a certificate of this authority, PEM"],
  ["--client-cert-auth [bool]", "the common name in a client's certificate is its user"],
  ["--client-crl-file <file>", "revoked certificates of clients, PEM or DER"],
  ["--client-cert-allowed-hostname <hosts>", "clients' certificates have to be for one of these"],
  ["--peer-auto-tls [bool]", "the same for the other servers, who do not verify it"],
  ["--peer-cert-file <file>", "certificate for the other servers, PEM"],
  ["--peer-key-file <file>", "its private key, PEM"],
  ["--peer-trusted-ca-file <file>", "servers have to show each other a certificate of this authority, PEM"],
  ["--peer-client-cert-auth [bool]", "the same; needs --peer-trusted-ca-file"],
  ["--peer-crl-file <file>", "revoked certificates of servers, PEM or DER"],
  ["--peer-cert-allowed-cn <names>", "servers' certificates have to have one of these common names"],
  ["--peer-cert-allowed-hostname <hosts>", "servers' certificates have to be for one of these"],
  [
    "--cipher-suites <list>",
    "of TLS, by Go's names: nothing else is spoken (default: Node's, from TLS 1.2 on)",
  ],
  ["--cors <origins>", "whose pages may ask over HTTP (default: all)"],
  ["--host-whitelist <hosts>", "under which names plain HTTP is answered (default: all)"],
  ["--insecure [bool]", "allow plain TCP beyond loopback"],
] as const;

const flagsWith = (end: RegExp) =>
  new Set(options.filter(([flags]) => end.test(flags)).map(([flags]) => /^--(\S+)/.exec(flags)![1]!));

/** The core's own flags: those that take a text, and switches. */
export const knownFlags = { texts: flagsWith(/<.*>$/), switches: flagsWith(/\[bool\]$/) };

export function addCommand(program: Command, finish: Finish): void {
  const command = program
    .command("core")
    .description("run a server of a consistent core, for clients of etcd");
  for (const [flags, what] of options) command.option(flags, what);
  const addForeign = (flag: string) => command.addOption(new Option(`--${flag} [value]`).hideHelp());
  for (const flag of Object.keys(foreign)) addForeign(flag);
  // Experimental flags are detected on the command line, since they differ between versions of etcd.
  const parse = command.parseOptions.bind(command);
  command.parseOptions = (words) => {
    for (const flag of experimentalIn(words))
      if (!command.options.some(({ long }) => long === `--${flag}`)) addForeign(flag);
    return parse(words);
  };
  command
    .addHelpText(
      "after",
      examples(
        "leasehold core",
        "leasehold core --name a --data-dir /var/lib/core --listen-client-urls http://127.0.0.1:2379",
      ),
    )
    .action(async (own: Record<string, string | boolean>, self: Command) => {
      const { core } = await import("./core.js");
      const { flags, warnings } = await settingsOf(own, self);
      finish(await core(flags, warnings));
    });
  addBackups(command, finish);
}

/** etcdctl's commands for snapshot files, of etcd and of the core. */
function addBackups(core: Command, finish: Finish): void {
  const [flag, why] = ["--skip-hash-check", "read a copy of an etcd's member/snap/db, which has no hash"];
  core
    .command("restore <file>")
    .description("make the data directory of a server of a new core from a backup (etcdctl snapshot save)")
    .option(flag, why)
    .addHelpText("after", examples("leasehold core restore backup.db --name a --data-dir /var/lib/core"))
    .action(async (file: string, own: { skipHashCheck?: boolean }) => {
      const { restore } = await import("./core.js");
      const { flags, warnings } = await settingsOf(core.opts(), core);
      for (const warning of warnings) printError(`warning: ${warning}`);
      finish(await restore(file, flags, own));
    });
  core
    .command("snapshot")
    .description("look at a backup")
    .command("status <file>")
    .description("check a backup, and tell of which revision it is")
    .option(flag, why)
    .action(async (file: string, own: { skipHashCheck?: boolean }, self: Command) => {
      const { snapshotStatus } = await import("./core.js");
      finish(await snapshotStatus(file, self.optsWithGlobals()["output"] === "json", own));
    });
}

function settingsOf(own: Given, command: Command): Promise<CoreSettings> {
  return coreSettings({ ...own, ...keyFileOf(command.parent) }, process.env, knownFlags);
}

/** Every other command uses the same flag for the cluster key's file, so it is parsed as a global option. */
function keyFileOf(program: Command | null): { keyFile?: string } {
  const isGiven = program?.getOptionValueSource("keyFile") === "cli";
  return isGiven ? { keyFile: String(program.getOptionValue("keyFile")) } : {};
}
