import { fromBinary } from "@bufbuild/protobuf";
import { LeaseholdError } from "leasehold/common";
import { type Command, CommandSchema } from "leasehold/etcd/gen/leasehold/command_pb.js";

/**
 * Deeper than any command that was ever accepted: a request within its own bound (100, and `nestingMax` in
 * transactions) is one deeper here. The log must stay readable for ever.
 */
const commandDepthMax = 200;

/** @throws LeaseholdError `LOG_CORRUPT` */
export function readCommand(index: number, data: Uint8Array): Command {
  try {
    return fromBinary(CommandSchema, data, {
      recursionLimit: commandDepthMax,
    });
  } catch (error) {
    throw new LeaseholdError("LOG_CORRUPT", `entry ${index} of the log is no command`, { cause: error });
  }
}
