/** A right to a folder or file and everything below it; `""` is the root. */
export interface Right {
  readonly path: string;
  readonly mayWrite: boolean;
}

/** The rights of one user. A path may be used if any of them allows it. */
export class Rights {
  static readonly all = new Rights([{ path: "", mayWrite: true }]);
  readonly list: readonly Right[];

  constructor(list: readonly Right[]) {
    this.list = list;
  }

  mayRead(path: string): boolean {
    return this.list.some((right) => isAtOrBelow(right.path, path));
  }

  mayWrite(path: string): boolean {
    return this.list.some((right) => right.mayWrite && isAtOrBelow(right.path, path));
  }

  /**
   * Whether the name may be removed or replaced. A right does not permit that for the very path to which it
   * refers.
   */
  mayReplace(path: string): boolean {
    return this.list.some((right) => right.mayWrite && path !== right.path && isAtOrBelow(right.path, path));
  }

  /** Whether a folder may be seen: because it may be read, or because it leads to something that may. */
  maySee(folder: string): boolean {
    return this.mayRead(folder) || this.list.some((right) => isAtOrBelow(folder, right.path));
  }
}

function isAtOrBelow(folder: string, path: string): boolean {
  return folder === "" || path === folder || path.startsWith(`${folder}/`);
}
