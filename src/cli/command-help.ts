/** Takes the exit code of the command that ran. */
export type Finish = (code: number) => void;

export function examples(...lines: string[]): string {
  return `\nExamples:\n${lines.map((line) => `  ${line}`).join("\n")}`;
}
