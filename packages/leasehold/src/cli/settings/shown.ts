import { isPem } from "../../runtime/pem.js";
import { type SettingKey, settingOf } from "./table.js";

/** The value of a setting for people, without secrets. */
export function shownTexts(key: SettingKey, texts: readonly string[] | undefined): string {
  const { isSecret, initial } = settingOf(key);
  if (texts === undefined) return initial === undefined ? "-" : String(initial);
  if (isSecret === true) return "(secret)";
  return texts.map((text) => (isPem(text) ? "(PEM text)" : withoutPasswords(text))).join(",");
}

/** Addresses of stores may contain a password, before the host or in the query. */
function withoutPasswords(text: string): string {
  return text
    .replaceAll(/:[^@,/\s]*@/g, ":(secret)@")
    .replaceAll(/((?:password|secret\w*|token)=)[^&,\s]*/gi, "$1(secret)");
}
