/**
 * The file operations of a node below its directory, so that tests can fail any call. Names never come from
 * users; they are relative to the directory.
 */
export interface Disk {
  /** Opens a file for reading and writing; creates it if it is missing. */
  open(name: string): Promise<DiskFile>;
  /** The names in a folder, `""` for the directory itself; none if the folder is missing. */
  names(folder: string): Promise<readonly string[]>;
  /** Does nothing if it exists. */
  makeFolder(folder: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  /** Does nothing if it is missing. */
  remove(name: string): Promise<void>;
  /** Makes creations, renames and removals in the folder durable. */
  syncFolder(folder: string): Promise<void>;
  /** The free space in bytes. */
  free(): Promise<number>;
}

export interface DiskFile {
  /** Reads into the bytes from a position, up to the end of the file; returns the number read. */
  read(bytes: Uint8Array, position: number): Promise<number>;
  /** Writes all of the bytes, or fails after an unknown part. */
  write(bytes: Uint8Array, position: number): Promise<void>;
  /** Makes earlier writes and truncations durable. */
  sync(): Promise<void>;
  truncate(bytes: number): Promise<void>;
  size(): Promise<number>;
  close(): Promise<void>;
}
