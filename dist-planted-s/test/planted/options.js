import { parseArgs } from "node:util";
/** The exit code for what cannot be understood, as everywhere in Leasehold. */
const usageExit = 2;
/** The options of a command, and whether it is to print one JSON object. What cannot be understood ends it. */
export function readOptions(options) {
    const output = { output: { type: "string", short: "o", default: "text" } };
    let values;
    try {
        ({ values } = parseArgs({ options: { ...options, ...output } }));
    }
    catch (error) {
        refuse(error.message);
    }
    const { output: format } = values;
    if (format !== "text" && format !== "json")
        refuse(`--output: text or json, and not "${String(format)}"`);
    return { values: values, json: format === "json" };
}
/** Says what is wrong and ends the command. */
export function refuse(problem) {
    process.stderr.write(`${problem}\n`);
    process.exit(usageExit);
}
