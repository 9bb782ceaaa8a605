import { create } from "@bufbuild/protobuf";
import type {
  AuthRoleAddRequest,
  AuthRoleDeleteRequest,
  AuthRoleGrantPermissionRequest,
  AuthRoleRevokePermissionRequest,
  AuthUserDeleteRequest,
  AuthUserGrantRoleRequest,
  AuthUserRevokeRoleRequest,
} from "leasehold/etcd/gen/etcd/auth_pb.js";
import { type Permission, PermissionSchema } from "leasehold/etcd/gen/etcd/authpb_pb.js";
import type { Authenticate, UserAdd, UserChangePassword } from "leasehold/etcd/gen/leasehold/command_pb.js";
import { CoreError } from "./errors.js";
import { keyOf } from "./keys.js";
import { owned } from "./values.js";
import { Permissions } from "./permissions.js";

/** The user and the role that may do everything while authentication is enabled (etcd). */
export const root = "root";

/** A user. Immutable: a snapshot in progress keeps the users of its revision. */
export interface User {
  readonly name: string;
  /** The password's hash; empty if the user has none. */
  readonly secret: Uint8Array;
  /** Sorted. */
  readonly roles: readonly string[];
}

/** A role; also immutable. */
export interface Role {
  readonly name: string;
  /** Ordered by key. */
  readonly permissions: readonly Permission[];
}

/** Memory of a user, a role or a permission, in addition to its own bytes. */
export const recordBytes = 300;

/** Memory of a role granted to a user, in addition to its name. */
export const grantBytes = 50;

/** Permissions of a root user. */
const everything = "everything";

/**
 * All permissions at one moment of the log. Each change makes a new object, so that holders of an old one
 * can detect changes.
 */
export class Rights {
  readonly #users: ReadonlyMap<string, User>;
  readonly #roles: ReadonlyMap<string, Role>;
  readonly #permissions = new Map<string, Permissions | typeof everything>();

  constructor(users: ReadonlyMap<string, User>, roles: ReadonlyMap<string, Role>) {
    this.#users = users;
    this.#roles = roles;
  }

  /** Returns undefined if there is no such user. */
  of(name: string): Permissions | typeof everything | undefined {
    const known = this.#permissions.get(name);
    if (known !== undefined) return known;
    const user = this.#users.get(name);
    if (user === undefined) return undefined;
    const permissions = user.roles.includes(root)
      ? everything
      : new Permissions(user.roles.flatMap((role) => this.#roles.get(role)?.permissions ?? []));
    this.#permissions.set(name, permissions);
    return permissions;
  }

  isRoot(name: string): boolean {
    return this.of(name) === everything;
  }
}

/**
 * Users, roles and permissions: a part of the replicated state. Tokens are not part of it, nor are passwords,
 * except as hashes.
 */
export class AuthState {
  isEnabled = false;
  /** Incremented at each change of users, roles and permissions, and when authentication is disabled. */
  revision = 1n;
  rights: Rights;
  readonly #users = new Map<string, User>();
  readonly #roles = new Map<string, Role>();
  #bytes = 0;

  constructor() {
    this.rights = new Rights(this.#users, this.#roles);
  }

  /** Approximate memory, bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  user(name: string): User {
    const user = this.#users.get(name);
    if (user === undefined) throw new CoreError("userNotFound");
    return user;
  }

  hasUser(name: string): boolean {
    return this.#users.has(name);
  }

  /**
   * Returns the secret of the next user by name that has one, or else of the first; empty if there are no
   * passwords.
   */
  secretAfter(name: string): Uint8Array {
    let [first, next]: [User | undefined, User | undefined] = [undefined, undefined];
    for (const user of this.#users.values()) {
      if (user.secret.length === 0) continue;
      if (first === undefined || user.name < first.name) first = user;
      if (user.name > name && (next === undefined || user.name < next.name)) next = user;
    }
    return (next ?? first)?.secret ?? new Uint8Array(0);
  }

  role(name: string): Role {
    const role = this.#roles.get(name);
    if (role === undefined) throw new CoreError("roleNotFound");
    return role;
  }

  /** Ordered by name. */
  users(): User[] {
    return byName(this.#users);
  }

  roles(): Role[] {
    return byName(this.#roles);
  }

  // Commands

  enable(): void {
    if (this.isEnabled) return;
    const user = this.#users.get(root);
    if (user === undefined) throw new CoreError("rootUserMissing");
    if (!user.roles.includes(root)) throw new CoreError("rootRoleMissing");
    this.isEnabled = true;
    this.rights = new Rights(this.#users, this.#roles);
  }

  disable(): void {
    if (!this.isEnabled) return;
    this.isEnabled = false;
    this.#changed();
  }

  /** Refuses unless the revision is unchanged: then the verified password is still the user's. */
  authenticate({ revision, user: name }: Authenticate): void {
    if (!this.isEnabled) throw new CoreError("authNotEnabled");
    const user = this.#users.get(name);
    if (user === undefined || user.secret.length === 0) throw new CoreError("authFailed");
    if (revision !== this.revision) throw new CoreError("authRevisionOld");
  }

  addUser({ name, secret }: UserAdd): void {
    if (name === "") throw new CoreError("userNameEmpty");
    if (this.#users.has(name)) throw new CoreError("userExists");
    this.#setUser({ name, secret: owned(secret), roles: [] });
    this.#changed();
  }

  deleteUser({ name }: AuthUserDeleteRequest): void {
    if (this.isEnabled && name === root) throw new CoreError("authManagement");
    const user = this.user(name);
    this.#users.delete(name);
    this.#bytes -= bytesOfUser(user);
    this.#changed();
  }

  /** A user without a password remains one, as in etcd. */
  changePassword({ name, secret }: UserChangePassword): void {
    const user = this.user(name);
    this.#setUser(user.secret.length === 0 ? user : { ...user, secret: owned(secret) });
    this.#changed();
  }

  grantRole({ role, user: name }: AuthUserGrantRoleRequest): void {
    const user = this.user(name);
    if (role !== root) this.role(role);
    if (user.roles.includes(role)) return;
    this.#setUser({ ...user, roles: [...user.roles, role].sort() });
    this.#changed();
  }

  revokeRole({ name, role }: AuthUserRevokeRoleRequest): void {
    if (this.isEnabled && name === root && role === root) throw new CoreError("authManagement");
    const user = this.user(name);
    if (!user.roles.includes(role)) throw new CoreError("roleNotGranted");
    this.#setUser({ ...user, roles: user.roles.filter((each) => each !== role) });
    this.#changed();
  }

  addRole({ name }: AuthRoleAddRequest): void {
    if (name === "") throw new CoreError("roleNameEmpty");
    if (this.#roles.has(name)) throw new CoreError("roleExists");
    this.#setRole({ name, permissions: [] });
    this.#changed();
  }

  /** Also revokes the role from its users. */
  deleteRole({ role: name }: AuthRoleDeleteRequest): void {
    if (this.isEnabled && name === root) throw new CoreError("authManagement");
    const role = this.role(name);
    this.#roles.delete(name);
    this.#bytes -= bytesOfRole(role);
    for (const user of this.#users.values())
      if (user.roles.includes(name))
        this.#setUser({ ...user, roles: user.roles.filter((each) => each !== name) });
    this.#changed();
  }

  /** Replaces a permission for the same keys. */
  grantPermission({ name, perm }: AuthRoleGrantPermissionRequest): void {
    if (perm === undefined) throw new CoreError("permissionMissing");
    const role = this.role(name);
    const { key, permType, rangeEnd } = perm;
    const granted = create(PermissionSchema, { key: owned(key), permType, rangeEnd: owned(rangeEnd) });
    const isSame = (each: Permission) => areSameKeys(each, perm);
    const permissions = role.permissions.some(isSame)
      ? role.permissions.map((each) => (isSame(each) ? granted : each))
      : [...role.permissions, granted].sort(byKey);
    this.#setRole({ name, permissions });
    this.#changed();
  }

  revokePermission(request: AuthRoleRevokePermissionRequest): void {
    const role = this.role(request.role);
    const permissions = role.permissions.filter((each) => !areSameKeys(each, request));
    if (permissions.length === role.permissions.length) throw new CoreError("permissionNotGranted");
    this.#setRole({ name: role.name, permissions });
    this.#changed();
  }

  /** Restores users or roles from a snapshot. */
  restore(records: { readonly users?: readonly User[]; readonly roles?: readonly Role[] }): void {
    for (const user of records.users ?? []) this.#setUser(user);
    for (const role of records.roles ?? []) this.#setRole(role);
  }

  #changed(): void {
    this.revision += 1n;
    this.rights = new Rights(this.#users, this.#roles);
  }

  #setUser(user: User): void {
    const before = this.#users.get(user.name);
    this.#bytes += bytesOfUser(user) - (before === undefined ? 0 : bytesOfUser(before));
    this.#users.set(user.name, user);
  }

  #setRole(role: Role): void {
    const before = this.#roles.get(role.name);
    this.#bytes += bytesOfRole(role) - (before === undefined ? 0 : bytesOfRole(before));
    this.#roles.set(role.name, role);
  }
}

function bytesOfUser({ name, roles, secret }: User): number {
  return roles.reduce(
    (sum, role) => sum + grantBytes + role.length,
    recordBytes + name.length + secret.length,
  );
}

function bytesOfRole({ name, permissions }: Role): number {
  return permissions.reduce(
    (sum, { key, rangeEnd }) => sum + recordBytes + key.length + rangeEnd.length,
    recordBytes + name.length,
  );
}

function byName<Named extends { readonly name: string }>(records: ReadonlyMap<string, Named>): Named[] {
  return [...records.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
}

function byKey(one: Permission, other: Permission): number {
  const [key, otherKey] = [keyOf(one.key), keyOf(other.key)];
  return key < otherKey ? -1 : key > otherKey ? 1 : 0;
}

type KeysOfRequest = Pick<Permission, "key" | "rangeEnd">;

function areSameKeys(one: KeysOfRequest, other: KeysOfRequest): boolean {
  return keyOf(one.key) === keyOf(other.key) && keyOf(one.rangeEnd) === keyOf(other.rangeEnd);
}
