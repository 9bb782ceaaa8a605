/** `name.incarnation` with a short incarnation: more hexadecimal digits tell nobody anything. */
export function shortHolder(holder: string): string {
  return holder.replace(/\.([0-9a-f]{6})[0-9a-f]{10,}$/, ".$1…");
}
