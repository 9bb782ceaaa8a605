import { create } from "@bufbuild/protobuf";
import {
  type AuthDisableResponse,
  AuthDisableResponseSchema,
  type AuthenticateResponse,
  AuthenticateResponseSchema,
  type AuthEnableResponse,
  AuthEnableResponseSchema,
  type AuthRoleAddResponse,
  AuthRoleAddResponseSchema,
  type AuthRoleDeleteResponse,
  AuthRoleDeleteResponseSchema,
  type AuthRoleGrantPermissionResponse,
  AuthRoleGrantPermissionResponseSchema,
  type AuthRoleRevokePermissionResponse,
  AuthRoleRevokePermissionResponseSchema,
  type AuthUserAddResponse,
  AuthUserAddResponseSchema,
  type AuthUserChangePasswordResponse,
  AuthUserChangePasswordResponseSchema,
  type AuthUserDeleteResponse,
  AuthUserDeleteResponseSchema,
  type AuthUserGrantRoleResponse,
  AuthUserGrantRoleResponseSchema,
  type AuthUserRevokeRoleResponse,
  AuthUserRevokeRoleResponseSchema,
} from "leasehold/etcd/gen/etcd/auth_pb.js";
import type { Command } from "leasehold/etcd/gen/leasehold/command_pb.js";
import type { AuthState } from "./auth-state.js";

/** The answer to a command about users, roles or permissions, without a header. */
export type AuthAnswer =
  | AuthDisableResponse
  | AuthEnableResponse
  | AuthenticateResponse
  | AuthRoleAddResponse
  | AuthRoleDeleteResponse
  | AuthRoleGrantPermissionResponse
  | AuthRoleRevokePermissionResponse
  | AuthUserAddResponse
  | AuthUserChangePasswordResponse
  | AuthUserDeleteResponse
  | AuthUserGrantRoleResponse
  | AuthUserRevokeRoleResponse;

/**
 * Applies a command about users, roles or permissions.
 *
 * @returns undefined for any other command
 * @throws CoreError before it has changed anything
 */
export function applyAuth(auth: AuthState, { case: kind, value }: Command["body"]): AuthAnswer | undefined {
  switch (kind) {
    case "authEnable":
      auth.enable();
      return create(AuthEnableResponseSchema);
    case "authDisable":
      auth.disable();
      return create(AuthDisableResponseSchema);
    case "authenticate":
      auth.authenticate(value);
      return create(AuthenticateResponseSchema, { token: value.token });
    case "userAdd":
      auth.addUser(value);
      return create(AuthUserAddResponseSchema);
    case "userDelete":
      auth.deleteUser(value);
      return create(AuthUserDeleteResponseSchema);
    case "userChangePassword":
      auth.changePassword(value);
      return create(AuthUserChangePasswordResponseSchema);
    case "userGrantRole":
      auth.grantRole(value);
      return create(AuthUserGrantRoleResponseSchema);
    case "userRevokeRole":
      auth.revokeRole(value);
      return create(AuthUserRevokeRoleResponseSchema);
    case "roleAdd":
      auth.addRole(value);
      return create(AuthRoleAddResponseSchema);
    case "roleDelete":
      auth.deleteRole(value);
      return create(AuthRoleDeleteResponseSchema);
    case "roleGrantPermission":
      auth.grantPermission(value);
      return create(AuthRoleGrantPermissionResponseSchema);
    case "roleRevokePermission":
      auth.revokePermission(value);
      return create(AuthRoleRevokePermissionResponseSchema);
    default:
      return undefined;
  }
}
