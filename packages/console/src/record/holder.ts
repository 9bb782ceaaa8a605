/**
 * `name.incarnation` with the incarnation shortened: its other hexadecimal digits are of no use to readers.
 */
export function shortHolder(holder: string): string {
  return holder.replace(/\.([0-9a-f]{6})[0-9a-f]{10,}$/, ".$1…");
}
