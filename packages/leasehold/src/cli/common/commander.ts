/**
 * Options, help and errors of the command. The build puts commander, with its licence, next to the bundle,
 * from where this file imports it: an installed Leasehold depends on no other package.
 */
export { Argument, Command, CommanderError, Help, InvalidArgumentError, Option } from "commander";
