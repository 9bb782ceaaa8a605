import { type Command, type Finish, Option, examples } from "leasehold/cli";

/** `leasehold docs`. */
export function addCommand(program: Command, finish: Finish): void {
  program
    .command("docs")
    .description("serve this documentation to browsers of this machine")
    .addOption(
      new Option("--address <host:port>", "where to serve it; port 0 takes a free one").default(
        "127.0.0.1:7465",
      ),
    )
    .addHelpText("after", examples("leasehold docs                        at http://127.0.0.1:7465/"))
    .action(async ({ address }: { readonly address: string }) => {
      const { serveDocs } = await import("./serve.js");
      finish(await serveDocs(address));
    });
}
