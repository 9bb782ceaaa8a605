import { type ParseArgsConfig, parseArgs } from "node:util";

/** The exit code for invalid usage, as everywhere in Leasehold. */
const usageExit = 2;

type Parsed<Options extends NonNullable<ParseArgsConfig["options"]>> = ReturnType<
  typeof parseArgs<{ options: Options }>
>["values"];

/**
 * The options of a command, and whether it is to print one JSON object. Ends the command if they are invalid.
 */
export function readOptions<Options extends NonNullable<ParseArgsConfig["options"]>>(
  options: Options,
): { readonly values: Parsed<Options>; readonly json: boolean } {
  const output = { output: { type: "string", short: "o", default: "text" } } as const;
  let values: ReturnType<typeof parseArgs>["values"];
  try {
    ({ values } = parseArgs({ options: { ...options, ...output } }));
  } catch (error) {
    refuse((error as Error).message);
  }
  const { output: format } = values;
  if (format !== "text" && format !== "json") refuse(`--output: text or json, and not "${String(format)}"`);
  return { values: values as Parsed<Options>, json: format === "json" };
}

/** Prints the problem and ends the command. */
export function refuse(problem: string): never {
  process.stderr.write(`${problem}\n`);
  process.exit(usageExit);
}
