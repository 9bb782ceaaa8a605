import { type Field, staticTable } from "./static-table.js";

/**
 * Makes a header block that changes no table (RFC 7541, section 6.2.2). It is valid on all connections, so it
 * can be made once.
 */
export function headerBlock(fields: readonly Field[]): Uint8Array {
  const bytes: number[] = [];
  for (const [name, value] of fields) {
    const same = staticTable.findIndex((entry) => entry[0] === name && entry[1] === value);
    if (same !== -1) {
      integer(bytes, 0x80, 7, same + 1);
      continue;
    }
    const index = staticTable.findIndex((entry) => entry[0] === name) + 1;
    integer(bytes, 0, 4, index);
    if (index === 0) text(bytes, name);
    text(bytes, value);
  }
  return Uint8Array.from(bytes);
}

function text(bytes: number[], value: string): void {
  integer(bytes, 0, 7, value.length);
  for (let at = 0; at < value.length; at += 1) bytes.push(value.charCodeAt(at));
}

function integer(bytes: number[], begin: number, prefixBits: number, value: number): void {
  const most = 2 ** prefixBits - 1;
  if (value < most) {
    bytes.push(begin + value);
    return;
  }
  bytes.push(begin + most);
  let rest = value - most;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  bytes.push(rest);
}
