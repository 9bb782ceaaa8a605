import {
  type Command,
  type Finish,
  Option,
  examples,
  logFormatOption,
  logLevelOption,
  metricsOption,
} from "leasehold/cli";

/** `leasehold gateway`. */
export function addCommand(program: Command, finish: Finish): void {
  const gateway = program
    .command("gateway")
    .description("serve leases over HTTP and JSON, for programs in every language")
    .addOption(
      new Option("--address <host:port>", "where to serve it")
        .default("127.0.0.1:7470")
        .env("LEASEHOLD_GATEWAY"),
    )
    .option(
      "--users-file <file>",
      "users with their tokens and rights; needed unless the address is of this machine only",
    )
    .option("--jwt-keys <file or url>", "keys of an issuer of JSON Web Tokens: a JWK Set")
    .option("--jwt-issuer <issuer>", "the iss of its tokens")
    .option("--jwt-audience <audience>", "the aud of its tokens for this gateway")
    .option("--tls-certificate <file>", "serve HTTPS with this certificate and its chain")
    .option("--tls-private-key <file>", "the certificate's key")
    .option("--client-ca <file>", "the authority of clients' certificates")
    .option("--insecure", "serve networks without users or without TLS")
    .addOption(metricsOption())
    .addOption(logFormatOption())
    .addOption(logLevelOption())
    .addHelpText(
      "after",
      examples(
        "leasehold gateway                                       of the local cluster, at http://127.0.0.1:7470",
        "leasehold gateway --endpoints core://10.0.0.1:2379",
        "leasehold gateway user ci hold:deploys/ >> users        a user, whose token it prints",
      ),
    )
    .action(async (_options: unknown, command: Command) => {
      const { serveGateway } = await import("./serve.js");
      finish(await serveGateway(command.optsWithGlobals()));
    });
  gateway
    .command("user")
    .description("print the line of a new user for the file of users, and its token to stderr")
    .argument("<name>", "the user's name")
    .argument(
      "<rights...>",
      "what it may do: see, read-lock, hold, break or administer, a colon, and a prefix of names",
    )
    .action(async (name: string, rights: string[]) => {
      const { printUser } = await import("./user.js");
      finish(printUser(name, rights));
    });
}
