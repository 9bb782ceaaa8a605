import {
  checkLinearizable,
  type HistoryOperation,
  type SequentialModel,
} from "../../src/testing/linearizability.js";

/** What a client does to a file. Content is text, a character for a byte. */
export type FileInput =
  | { readonly kind: "read"; readonly offset: number; readonly length: number }
  | { readonly kind: "stat" }
  | { readonly kind: "create" }
  | { readonly kind: "write"; readonly offset: number; readonly text: string }
  | { readonly kind: "append"; readonly text: string }
  | { readonly kind: "truncate"; readonly size: number }
  | { readonly kind: "remove" };

/** `missing`: there was no such file. */
export type FileOutput = { readonly text?: string; readonly size?: number } | "missing";

/** The most steps that the judgement of one file takes. */
const stepsMax = 400_000;

/** A file as it should be: its content, or null if it is not there. */
export const fileModel: SequentialModel<string | null, FileInput, FileOutput> = {
  initial: null,
  step(content, input, output) {
    if (input.kind === "create") return output === "missing" ? [] : [content ?? ""];
    // An operation without an answer on a file that is not there does nothing.
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

export type FileHistory = HistoryOperation<FileInput, FileOutput>[];

export const judgeFile = (history: FileHistory) => checkLinearizable(fileModel, history, { stepsMax });
