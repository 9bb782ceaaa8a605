import { isPem } from "../../runtime/pem.js";
import { redacted } from "../output/redact.js";
import { type SettingKey, settingOf } from "./table.js";

/** The value of a setting for people, without secrets. */
export function shownTexts(key: SettingKey, texts: readonly string[] | undefined): string {
  const { isSecret, initial } = settingOf(key);
  if (texts === undefined) return initial === undefined ? "-" : String(initial);
  if (isSecret === true) return "(secret)";
  return texts.map((text) => (isPem(text) ? "(PEM text)" : redacted(text))).join(",");
}
