import type { Endpoint } from "../endpoint/endpoint.ts";
import type { RolesSpec } from "../plugin/spec.ts";

/** Which stage of a request an endpoint is chosen for. */
export type Stage = "prefill" | "decode";

/** Roles by label in common use, for configurations: llm-d's, whose roles may be combined. */
export const ROLES_DEFAULT: RolesSpec = {
  label: "llm-d.ai/role",
  prefill: ["prefill", "encode-prefill", "prefill-decode", "both", "encode-prefill-decode"],
  decode: ["decode", "prefill-decode", "both", "encode-prefill-decode"],
  unlabelled: "decode",
  pairLabel: "",
};

/** Who may do what, by a label of the endpoints. */
export class Roles {
  readonly #label: string;
  readonly #values: Readonly<Record<Stage, ReadonlySet<string>>>;
  readonly #unlabelled: RolesSpec["unlabelled"];
  readonly #pairLabel: string;

  constructor({ label, prefill, decode, unlabelled, pairLabel }: RolesSpec) {
    this.#label = label;
    this.#values = { prefill: new Set(prefill), decode: new Set(decode) };
    this.#unlabelled = unlabelled;
    this.#pairLabel = pairLabel;
  }

  may(stage: Stage, { labels }: Endpoint): boolean {
    const role = labels[this.#label];
    if (role === undefined) return this.#unlabelled === "both" || this.#unlabelled === stage;
    return this.#values[stage].has(role);
  }

  /** Whether blocks may go from one to the other. */
  mayPair(one: Endpoint, other: Endpoint): boolean {
    return this.#pairLabel === "" || one.labels[this.#pairLabel] === other.labels[this.#pairLabel];
  }
}
