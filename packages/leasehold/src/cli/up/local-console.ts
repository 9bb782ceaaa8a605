import { open } from "../../index.js";
import type { Leases } from "../../lease/types.js";
import { LeaseholdError } from "../../lease/errors.js";
import { few } from "../../common/lists.js";
import { loadPackage } from "../../runtime/optional-package.js";
import { type Settings, settingsOf } from "../common/settings.js";
import { freePorts } from "./ports.js";

/** The exports of `@leasehold/console`, as far as they are used here. */
interface ConsoleModule {
  startConsole(
    leases: Leases,
    settings: Settings,
    options: { readonly address: string; readonly allowChanges: boolean },
  ): Promise<{ close(): Promise<void> }>;
}

const portWanted = 7450;

/** The page of the local cluster, if its package is installed. */
export class LocalConsole {
  readonly url: string;
  readonly #module: ConsoleModule;
  readonly #address: string;
  readonly #opened: { close(): Promise<void> }[] = [];
  #isClosed = false;

  private constructor(module: ConsoleModule, address: string) {
    this.#module = module;
    this.#address = address;
    this.url = `http://${address}/`;
  }

  static async find(): Promise<LocalConsole | undefined> {
    const name: string = "@leasehold/console";
    try {
      const module = await loadPackage<ConsoleModule>(name, "the page");
      const [port] = await freePorts(portWanted, 1);
      return new LocalConsole(module, `127.0.0.1:${port}`);
    } catch (error) {
      if (error instanceof LeaseholdError && error.code === "UNSUPPORTED") return undefined;
      throw error;
    }
  }

  /** Serves the page once the cluster answers. Nothing depends on the page, so this may fail. */
  async serve(endpoints: readonly string[], cluster: string | undefined): Promise<void> {
    try {
      const settings = settingsOf({ endpoints, ...(cluster !== undefined && { cluster }) });
      const leases = await open(...few(settings.endpoints), { ...(cluster !== undefined && { cluster }) });
      await this.#keep(leases);
      if (this.#isClosed) return;
      const options = { address: this.#address, allowChanges: true };
      await this.#keep(await this.#module.startConsole(leases, settings, options));
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      process.emitWarning(`the page cannot be served: ${why}`, "LeaseholdWarning");
    }
  }

  /** A client or a page that is being opened meanwhile is closed once it is open. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const each of this.#opened.splice(0).toReversed()) await each.close();
  }

  async #keep(opened: { close(): Promise<void> }): Promise<void> {
    if (this.#isClosed) await opened.close();
    else this.#opened.push(opened);
  }
}
