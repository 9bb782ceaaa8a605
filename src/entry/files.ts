/**
 * Replicated files. Each file has a primary that a lease elects, whichever ground the
 * leases rest on.
 */
export type { BlockEntry, BlockStore, StoredBlock } from "../files/ports.js";
export { MemoryBlockStore, type MemoryStoreOptions } from "../files/memory-store.js";
export { startFiles, type StartFilesOptions } from "../files/node/start.js";
export type { SecurityOptions } from "../runtime/security/options.js";
export type { Logger } from "../runtime/logger.js";
export {
  readStream,
  type ReadStreamOptions,
  writeStream,
  type WriteStreamOptions,
} from "../files/node/streams.js";
export type {
  ConditionOptions,
  FileCallOptions,
  FileList,
  Files,
  FilesStatus,
  FileStat,
  ListFilesOptions,
  OpenFileOptions,
  ReplicatedFile,
} from "../files/types.js";
export { FileUncertainError } from "../files/uncertain.js";
export { openBlockDirectory } from "../files/disk/directory-store.js";
export { serveWebdav, type WebdavOptions, type WebdavServer } from "../files/webdav/server.js";
