import { HttpRefusal } from "../api/problem.js";
import type { Route } from "../api/routes.js";

/** The gateway generates all ids, from letters, digits, `-`, `_` and dots. Nothing is decoded. */
const idForm = /^[A-Za-z0-9_.-]{1,128}$/;

/** Finds the route of a request. */
export class RouteTable {
  readonly #byPath = new Map<string, Route[]>();

  constructor(routes: readonly Route[]) {
    for (const route of routes)
      this.#byPath.set(route.path, [...(this.#byPath.get(route.path) ?? []), route]);
  }

  /** @throws HttpRefusal 404, 405 */
  find(method: string, pathname: string): { readonly route: Route; readonly id: string } {
    const parts = pathname.split("/");
    const id = parts[3];
    const exact = this.#byPath.get(pathname);
    const withId =
      id !== undefined && idForm.test(id) ? this.#byPath.get(parts.with(3, "{id}").join("/")) : undefined;
    const routes = exact ?? withId;
    if (routes === undefined) throw new HttpRefusal(404, "there is nothing here: see /openapi.json");
    const route = routes.find((each) => each.method === method);
    if (route !== undefined) return { route, id: exact === undefined ? (id ?? "") : "" };
    const allow = routes.map((each) => each.method).join(", ");
    throw new HttpRefusal(405, `the methods here are ${allow}`, { allow });
  }
}
