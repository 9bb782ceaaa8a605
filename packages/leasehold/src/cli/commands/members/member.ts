import { changeMembers, listMembers } from "../../../flease/tcp/change-members.js";
import type { MemberChange } from "../../../flease/views/member-change.js";
import type { ViewStatus } from "../../../flease/views/member-change.js";
import { keptAlive } from "../../../common/keep-alive.js";
import { realWorld } from "../../../runtime/world.js";
import { LeaseholdError } from "../../../lease/errors.js";
import { CommandFailure, usageError } from "../../common/failure.js";
import { exitCode } from "../../common/exit-codes.js";
import { type SharedOptions, openOptions, settingsOf } from "../../common/settings.js";
import { type Presentation, present, shortTime } from "../../output/present.js";
import { isSeen, printError, printLines, printProgress } from "../../output/print.js";
import { tableLines } from "../../output/table.js";

/** The arguments of a change: `id=host:port` of the new member, the id of the removed one. */
export interface ChangeWords {
  readonly added?: string;
  readonly remove?: string;
}

/** `leasehold member list`. */
export async function list(options: SharedOptions): Promise<number> {
  const settings = settingsOf(options);
  const addresses = addressesOf(settings.endpoints);
  const world = realWorld();
  const asked = () => listMembers(addresses, openOptions(settings), world);
  present(settings.output, presentMembers(await keptAlive(world.keepAlive, asked)));
  return exitCode("ok");
}

/** `leasehold member add`, `remove` and `replace`: ends when the change is complete. */
export async function change(
  words: ChangeWords,
  options: SharedOptions & { readonly within?: string },
): Promise<number> {
  const settings = settingsOf(options);
  const addresses = addressesOf(settings.endpoints);
  const wanted = { ...comingFrom(words.added), remove: words.remove };
  const world = realWorld();
  const { add, address } = wanted;
  let noted = "";
  const onProgress = (status: ViewStatus) => {
    const text = progressOf(status);
    printProgress(text);
    // The numbers change every second, so they are only printed on a terminal.
    const kind = text.replaceAll(/[\d.]+/g, "");
    if (kind === noted) return;
    noted = kind;
    if (!isSeen()) printError(text);
    if (add !== undefined && status.waiting?.code === "UNREACHABLE") {
      printProgress("");
      printError(
        `${add} is waited for: start it with leasehold peer --id ${add} --listen ${address} --views-file FILE --initial-cluster-state existing, and the members that the cluster began with`,
      );
    }
  };
  const waits = { timeout: options.within, onProgress };
  try {
    const changed = () => changeMembers(addresses, openOptions(settings), wanted, waits, world);
    const done = await keptAlive(world.keepAlive, changed).catch(failsInTime);
    printProgress("");
    present(settings.output, presentMembers(done));
    if (settings.output === "table") printLines(nextSteps(wanted));
  } finally {
    printProgress("");
  }
  return exitCode("ok");
}

/** The remaining work after a change. */
function nextSteps({ add, remove }: MemberChange): string[] {
  const lines: string[] = [];
  if (add !== undefined)
    lines.push(
      `${add} is a member and votes; settings of the other members stay as they are, clients may use its address`,
    );
  if (remove !== undefined)
    lines.push(`${remove} is no member any more: stop it, then its views file may be deleted`);
  return lines;
}

/** A timeout here means that the expected state was not reached, not that somebody else holds a lease. */
function failsInTime(error: unknown): never {
  if (error instanceof LeaseholdError && error.code === "TIMEOUT")
    throw new CommandFailure("unavailable", error.message);
  throw error;
}

function comingFrom(added: string | undefined): MemberChange {
  if (added === undefined) return {};
  const [, add, address] = /^([^=]+)=(.+)$/.exec(added) ?? [];
  if (add === undefined) throw usageError(`${added}: it should be id=host:port, such as d=10.0.0.4:7400`);
  return { add, address };
}

function addressesOf(endpoints: readonly string[]): string[] {
  return endpoints.map((endpoint) => {
    const address = /^flease:\/\/([^/]+)\/?$/.exec(endpoint)?.[1];
    if (address === undefined)
      throw usageError(`${endpoint}: only clusters of peers (flease://…) have members that can be changed`);
    return address;
  });
}

/** The progress of a change, in one line. */
export function progressOf({ number, joint, waiting }: ViewStatus): string {
  if (waiting !== undefined) return `view ${number}, not changed yet: ${waiting.text}`;
  if (joint === undefined) return `view ${number}`;
  if (joint.waitMs > 0)
    return `joint view ${number}: leases of the former view may run for ${shortTime(joint.waitMs)}`;
  return `joint view ${number}: waiting for ${joint.unsettled.join(", ")}`;
}

export function presentMembers(status: ViewStatus): Presentation {
  const { number, members, cellSize, joint } = status;
  return {
    document: status,
    table: (paint, widthMax) => [
      ...tableLines(
        [{ title: "MEMBER" }, { title: "ADDRESS", shrinks: true }],
        Object.entries(members).map(([id, address]) => [{ text: id, style: "bold" }, { text: address }]),
        paint,
        widthMax,
      ),
      `view ${number}; cells of ${cellSize}`,
      ...(joint === undefined
        ? []
        : [`a change is under way, from ${joint.before.join(", ")}: ${progressOf(status)}`]),
    ],
  };
}
