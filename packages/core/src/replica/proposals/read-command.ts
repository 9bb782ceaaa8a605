import { fromBinary } from "@bufbuild/protobuf";
import { LeaseholdError } from "leasehold/common";
import { type Command, CommandSchema } from "leasehold/etcd/gen/leasehold/command_pb.js";

/**
 * Exceeds the depth of every command ever accepted. A request within its own bound (100, and `nestingMax` in
 * transactions) is one level deeper here, and the log must remain readable forever.
 */
const commandDepthMax = 200;

/** @throws LeaseholdError `LOG_CORRUPT` */
export function readCommand(index: number, data: Uint8Array): Command {
  try {
    return fromBinary(CommandSchema, data, {
      recursionLimit: commandDepthMax,
    });
  } catch (error) {
    throw new LeaseholdError("LOG_CORRUPT", `entry ${index} of the log is not a command`, { cause: error });
  }
}
