/**
 * Options, help and errors of the command. The build puts commander itself in place of this file, with its
 * licence beside it: an installed Leasehold depends on no other package.
 */
export { Argument, Command, CommanderError, Help, InvalidArgumentError, Option } from "commander";
