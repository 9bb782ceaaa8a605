/**
 * Returns the content between the lines of a PEM file (RFC 7468), for each block with this label. Text
 * between blocks is a comment, but after the last block no line may begin as theirs do: a file that is being
 * written may end anywhere.
 *
 * @throws RangeError for an incomplete file
 */
export function pemBlocks(file: Buffer, label: string): Buffer[] {
  const text = file.toString("latin1");
  const blocks = [...text.matchAll(/-----BEGIN ([^-]+)-----([^-]*)-----END ([^-]+)-----/g)];
  const after = text.slice(text.lastIndexOf("-----END")).replace(/^-----END [^-]+-----/, "");
  const isWhole = !/^-/m.test(after);
  if (!isWhole || blocks.length !== text.split("-----BEGIN").length - 1)
    throw new RangeError("a block of it is not whole");
  return blocks
    .filter(([, begins, , ends]) => begins === label && ends === label)
    .map(([, , content]) => fromBase64(content!.replaceAll(/\s/g, "")));
}

/** Checked here, as Node skips invalid base64. */
function fromBase64(text: string): Buffer {
  const bytes = Buffer.from(text, "base64");
  if (bytes.toString("base64") !== text) throw new RangeError("one of its blocks is not base64");
  return bytes;
}
