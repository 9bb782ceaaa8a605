import type { Command } from "./common/commander.js";
import { LeaseholdError } from "../lease/errors.js";
import { loadPackage } from "../runtime/optional-package.js";
import { usageError } from "./common/failure.js";
import type { Finish } from "./command-help.js";

/** The commands of optional packages. */
export const packageCommands = [
  {
    name: "core",
    from: "@leasehold/core",
    description: "run a server of a consistent core, for clients of etcd",
  },
  {
    name: "files",
    from: "@leasehold/files",
    description: "replicated files: put, get and list them, and run the nodes that keep them",
  },
  {
    name: "console",
    from: "@leasehold/console",
    description: "serve a page that shows who holds what, and why a lease cannot be had",
  },
  {
    name: "top",
    from: "@leasehold/console",
    description: "watch leases, holders and their ground on the terminal",
  },
  {
    name: "gateway",
    from: "@leasehold/gateway",
    description: "serve leases over HTTP and JSON, for programs in every language",
  },
  {
    name: "docs",
    from: "@leasehold/docs",
    description: "serve this documentation to browsers of this machine",
  },
  {
    name: "sim",
    from: "@leasehold/sim",
    description:
      "run random bad days of a simulated cluster, and check the protocol's invariants all the time",
  },
] as const;

/** The `./command` export of such a package. */
interface CommandModule {
  addCommand(program: Command, finish: Finish, name: string): void;
}

/**
 * Adds these commands. A package is loaded only if `words` contain its command's name, or if `words` is
 * absent. A package that is not installed gets a command that explains how to install it.
 */
export async function addPackageCommands(
  program: Command,
  finish: Finish,
  words?: readonly string[],
): Promise<void> {
  const end = words?.indexOf("--") ?? -1;
  const own = end === -1 ? words : words?.slice(0, end);
  for (const { name, from, description } of packageCommands) {
    const module = own === undefined || own.includes(name) ? await loaded(name, from) : undefined;
    if (module !== undefined && !(module instanceof LeaseholdError)) {
      module.addCommand(program, finish, name);
      continue;
    }
    program
      .command(name)
      .description(description)
      .argument("[words...]")
      .helpOption(false)
      .allowUnknownOption()
      .allowExcessArguments()
      .action(() => {
        throw module ?? usageError(`${name} must be the first word: leasehold ${name} …`);
      });
  }
}

/** Loads the module, or returns the reason why it is missing. */
async function loaded(name: string, from: string): Promise<CommandModule | LeaseholdError> {
  const path: string = `${from}/command`;
  try {
    return await loadPackage<CommandModule>(
      from,
      `leasehold ${name}`,
      () => import(/* webpackIgnore: true */ /* @vite-ignore */ path) as Promise<CommandModule>,
    );
  } catch (error) {
    if (error instanceof LeaseholdError) return error;
    throw error;
  }
}
