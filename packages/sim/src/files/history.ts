import {
  checkLinearizable,
  type HistoryOperation,
  type SequentialModel,
} from "leasehold/inner/testing/linearizability.js";

/** An operation on a file. Content is text with one character per byte. */
export type FileInput = FileCall & {
  /**
   * Its primary reported an unknown outcome, and the next primary settled it: either the operation took
   * effect before that, or it never will.
   */
  readonly isSettled?: boolean;
};

export type FileCall =
  | { readonly kind: "read"; readonly offset: number; readonly length: number }
  | { readonly kind: "stat" }
  | { readonly kind: "create" }
  | { readonly kind: "write"; readonly offset: number; readonly text: string }
  | { readonly kind: "append"; readonly text: string }
  | { readonly kind: "truncate"; readonly size: number }
  | { readonly kind: "remove" };

/** `missing`: the file did not exist. */
export type FileOutput = { readonly text?: string; readonly size?: number } | "missing";

/** The most steps for checking one file. */
const stepsMax = 400_000;

/** The sequential model of a file: its content, or null if it does not exist. */
export const fileModel: SequentialModel<string | null, FileInput, FileOutput> = {
  initial: null,
  step(content, input, output) {
    if (input.isSettled === true)
      return [content, ...this.step(content, { ...input, isSettled: false }, undefined)];
    if (input.kind === "create") return output === "missing" ? [] : [content ?? ""];
    // An operation without an answer on a missing file does nothing.
    if (content === null) return output === undefined || output === "missing" ? [null] : [];
    if (output === "missing") return [];
    switch (input.kind) {
      case "read": {
        const text = content.slice(input.offset, input.offset + input.length);
        return output === undefined || output.text === text ? [content] : [];
      }
      case "stat":
        return output === undefined || output.size === content.length ? [content] : [];
      case "write":
        return [written(content, input.offset, input.text)];
      case "append":
        return output === undefined || output.size === content.length ? [content + input.text] : [];
      case "truncate":
        return [content.slice(0, input.size).padEnd(input.size, "\0")];
      case "remove":
        return [null];
    }
  },
  keyOf: (content) => content ?? "\u0001",
};

function written(content: string, offset: number, text: string): string {
  const longer = content.padEnd(offset + text.length, "\0");
  return longer.slice(0, offset) + text + longer.slice(offset + text.length);
}

export type FileOperations = HistoryOperation<FileInput, FileOutput>[];

export interface FileHistory {
  readonly operations: FileOperations;
  readonly uncertain: Uncertain;
}

/** Operations by file path. */
export type FileHistories = ReadonlyMap<string, FileHistory>;

/**
 * Operations that a primary left uncertain, and when. A later call that succeeded was served by a later
 * tenure after its reset, so the operation took effect before that reset or never.
 */
export type Uncertain = { readonly input: FileCall; readonly calledAt: number; readonly saidAt: number }[];

export function judgeFile({ operations, uncertain }: FileHistory) {
  const settled = uncertain.map(({ input, calledAt, saidAt }) => {
    const later = operations.flatMap((other) =>
      other.calledAt > saidAt && other.returnedAt !== undefined ? [other.returnedAt] : [],
    );
    return later.length === 0
      ? { input, calledAt }
      : {
          input: { ...input, isSettled: true },
          output: {},
          calledAt,
          returnedAt: later.reduce((one, other) => Math.min(one, other)),
        };
  });
  return checkLinearizable(fileModel, [...operations, ...settled], { stepsMax });
}
