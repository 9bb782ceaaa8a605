/**
 * Options, help and errors of the command. The build puts commander itself, with its licence, beside the
 * bundle, and has this file take it from there: an installed Leasehold depends on no other package.
 */
export { Argument, Command, CommanderError, Help, InvalidArgumentError, Option } from "commander";
