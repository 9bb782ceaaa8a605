import { type Command, Argument, Option } from "./common/commander.js";
import { type Finish, examples, wholeNumber } from "./command-help.js";
import type { CertOptions } from "./commands/cert/cert.js";
import type { Step } from "./commands/cert/authority.js";
import { type KindName, kinds } from "./commands/cert/profile.js";

const daysMax = 36_500;
const parseDays = wholeNumber(1, daysMax);
const daysOption = (otherwise: number) =>
  new Option("--days <n>", `days of validity (default: ${otherwise})`).argParser(parseDays);

/** `leasehold cert …`: certificates and cluster keys. */
export function addCert(program: Command, finish: Finish): void {
  const cert = program
    .command("cert")
    .description("make, show, renew and rotate certificates and cluster keys; needs openssl")
    .addHelpText(
      "after",
      examples(
        "leasehold cert authority pki",
        "leasehold cert member pki a --host a.example.com",
        "leasehold cert client pki",
        "leasehold cert show pki",
        "leasehold cert renew pki",
        "leasehold cert key cluster.key --roles",
        "leasehold cert rotate pki trust",
      ),
    );
  cert
    .command("authority")
    .description(
      "make a certificate authority: ca.pem for every machine, and ca.key, which stays in the folder",
    )
    .argument("<folder>", "a new folder")
    .addOption(daysOption(3650))
    .action(async (folder: string, _options: unknown, command: Command) => {
      const { authority } = await import("./commands/cert/cert.js");
      finish(await authority(folder, command.optsWithGlobals<CertOptions>()));
    });
  for (const kind of Object.keys(kinds) as KindName[]) addKind(cert, kind, finish);
  addRenewal(cert, finish);
  addKeys(cert, finish);
}

function addKind(cert: Command, kind: KindName, finish: Finish): void {
  const { who, name, hosts } = kinds[kind];
  const hasDefaultName = kind === "client" || kind === "observer";
  const issuing = cert
    .command(kind)
    .description(`issue a certificate for ${who}`)
    .argument("<folder>", "the folder of the authority")
    .argument(hasDefaultName ? "[name]" : "<name>", name, hasDefaultName ? kind : undefined)
    .addOption(daysOption(90));
  if (kind === "member") issuing.alias("node");
  if (hosts !== "none")
    issuing.option("--host <host>", "a name or address that clients dial; repeat for each", collect);
  issuing.action(async (folder: string, given: string, _options: unknown, command: Command) => {
    const { issue } = await import("./commands/cert/cert.js");
    finish(await issue(kind, folder, given, command.optsWithGlobals<CertOptions>()));
  });
}

function addRenewal(cert: Command, finish: Finish): void {
  cert
    .command("renew")
    .description("renew the certificates of a folder that expire soon, with new keys")
    .argument("<folder>", "the folder of the authority")
    .addOption(
      new Option("--within <days>", "those that expire within this many days (default: 30)").argParser(
        parseDays,
      ),
    )
    .addOption(new Option("--all", "all of them").conflicts("within"))
    .addOption(daysOption(90))
    .action(async (folder: string, _options: unknown, command: Command) => {
      const { renew } = await import("./commands/cert/cert.js");
      finish(await renew(folder, command.optsWithGlobals<CertOptions>()));
    });
  cert
    .command("show")
    .description("show each certificate's owner, expiry and state; exits with 78 unless all are ok")
    .argument("<path...>", "files, or folders of authorities")
    .addOption(
      new Option("--within <days>", "days before expiry that count as soon (default: 30)").argParser(
        parseDays,
      ),
    )
    .action(async (paths: string[], _options: unknown, command: Command) => {
      const { show } = await import("./commands/cert/cert.js");
      finish(await show(paths, command.optsWithGlobals<CertOptions>()));
    });
}

function addKeys(cert: Command, finish: Finish): void {
  cert
    .command("key")
    .description("make a cluster key, which needs no openssl")
    .argument("<file>", "a new file")
    .option("--roles", "a key for each role: members, clients and observers")
    .action(async (path: string, _options: unknown, command: Command) => {
      const { key } = await import("./commands/cert/cert.js");
      finish(await key(path, command.optsWithGlobals<CertOptions>()));
    });
  cert
    .command("rotate")
    .description("replace an authority or cluster keys in three steps, without a pause")
    .argument("<path>", "the folder of an authority, or a file of cluster keys")
    .addArgument(
      new Argument("<step>", "trust the new one beside the former, switch to it, or finish").choices([
        "trust",
        "switch",
        "finish",
      ]),
    )
    .addOption(daysOption(90))
    .action(async (path: string, step: Step, _options: unknown, command: Command) => {
      const { rotate } = await import("./commands/cert/cert.js");
      finish(await rotate(path, step, command.optsWithGlobals<CertOptions>()));
    });
}

function collect(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text];
}
