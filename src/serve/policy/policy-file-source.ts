import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import type { ServePlan } from "../plan/serve-plan.ts";
import { type Policy, policyOf, policyOver } from "./policy.ts";
import { FILE_SOURCE } from "./policy-keeper.ts";
import type { OfferPolicy, PolicyProposal, PolicySource } from "./policy-source.ts";
import { RepeatedLook } from "./repeated-look.ts";
import type { Config } from "#config/schema.ts";

export interface PolicyFileOptions {
  readonly configFile: string;
  /** Reads file, environment and flags; throws ConfigError. */
  readonly reload: () => ServePlan;
  /** Notified of what was read and is accepted, for what is no part of a policy. */
  readonly reread?: (read: ServePlan) => void;
  /** The configuration that the gateway runs with. */
  readonly running: Config;
  /** Time between two looks. */
  readonly watchMillis: number;
}

/** Files that are looked at, the configuration among them. */
const FILES_MAX = 64;

/**
 * The configuration file and the YAML files that it names, by looking at their contents now and then: an editor's rename,
 * a ConfigMap's swapped link and a network drive all look alike then, and none of them is missed. A change counts once
 * two looks in a row see the same, so that a file which is being written is not read half.
 */
export class PolicyFileSource implements PolicySource {
  readonly name = FILE_SOURCE;
  readonly #options: PolicyFileOptions;
  #looks: RepeatedLook | undefined;
  #offered = "";
  #seen = "";
  #refused = false;

  constructor(options: PolicyFileOptions) {
    this.#options = options;
  }

  start(offer: OfferPolicy): void {
    this.#looks = new RepeatedLook(() => this.#looked(offer), this.#options.watchMillis);
    this.#looks.start();
  }

  retry(): void {
    if (this.#refused) this.#offered = "";
  }

  async stop(): Promise<void> {
    await this.#looks?.stop();
  }

  /** What is there at first is offered too: it may have changed while the gateway started. */
  async #looked(offer: OfferPolicy): Promise<void> {
    const { configFile, reload, reread, running } = this.#options;
    const digest = await digestOf(configFile);
    const settled = digest === this.#seen;
    this.#seen = digest;
    if (this.#looks?.isStopped === true || !settled || digest === this.#offered) return;
    this.#offered = digest;
    let plan: ServePlan | undefined;
    const read = (): Policy => {
      plan = reload();
      return policyOf(plan, running);
    };
    const over: PolicyProposal["over"] = (...policies) => policyOver(...policies, running);
    const { outcome } = offer({ source: this.name, by: configFile, note: "", read, over });
    this.#refused = outcome === "refused";
    if (outcome !== "refused" && plan !== undefined) reread?.(plan);
  }
}

/** Of the contents of a file and of all that it and they name; a file that cannot be read counts as such. */
async function digestOf(configFile: string): Promise<string> {
  const hash = createHash("sha256");
  const files = new Set([resolve(configFile)]);
  for (const file of files) {
    const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => error.code ?? "unreadable");
    hash.update(JSON.stringify([file, text]));
    for (const [name] of text.matchAll(YAML_FILE_NAME)) {
      for (const base of [".", dirname(file)]) if (files.size < FILES_MAX) files.add(resolve(base, name));
    }
  }
  return hash.digest("base64");
}

const YAML_FILE_NAME = /[\w./~@+-]+\.ya?ml\b/g;
