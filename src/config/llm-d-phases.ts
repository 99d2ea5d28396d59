import { ROLES_DEFAULT } from "#core/profile/profile-stages.ts";
import { shown } from "#core/plugin/parameter.ts";
import type { PartialProfile } from "#core/profile/check.ts";
import type { DisaggregationSpec, PartialChooser } from "#core/plugin/spec.ts";
import type { Path } from "./schema-node.ts";

/** A declared plugin of an EndpointPickerConfig. */
export interface DeclaredPlugin {
  readonly name?: string | undefined;
  readonly type: string;
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** Which scheduling profile chooses which phase, and when there are two phases. */
export interface LlmDPhases {
  readonly decode: string;
  readonly prefill: string;
  /** Undefined: prompts are never computed elsewhere. */
  readonly divided: { readonly colocateBelowTokens: number; readonly promptTokensMin: number } | undefined;
}

/** Plugins that choose among scheduling profiles, and those that decide whether they do. */
const HANDLERS: ReadonlySet<string> = new Set(["disagg-profile-handler", "pd-profile-handler"]);
const PREFIX_DECIDER = "prefix-based-pd-decider";
const DECIDERS: ReadonlySet<string> = new Set([PREFIX_DECIDER, "always-disagg-pd-decider"]);
/** What the handlers take, beside what they ignore. */
const NAMES = {
  decode: ["profiles.decode", "decodeProfile"],
  prefill: ["profiles.prefill", "prefillProfile"],
  decider: ["deciders.prefill", "prefillDeciderPluginName", "deciderPluginName"],
  encode: ["profiles.encode", "deciders.encode", "encodeProfile", "encodeDeciderPluginName"],
  order: ["stageOrder"],
} as const;

/** Filters that stand for the roles of a phase, which all profiles with two phases have here. */
export const ROLE_FILTERS: ReadonlySet<string> = new Set(["decode-filter", "prefill-filter"]);

export function isPhasePlugin(type: string): boolean {
  return HANDLERS.has(type) || DECIDERS.has(type);
}

/** The phases of a configuration whose handler has some; undefined where it has one profile for all. */
export function llmDPhases(
  plugins: readonly DeclaredPlugin[],
  problem: (path: Path, message: string) => void,
): LlmDPhases | undefined {
  const at = plugins.findIndex(({ type }) => HANDLERS.has(type));
  const handler = plugins[at];
  if (handler === undefined) return undefined;
  const given = (names: readonly string[]): string | undefined =>
    names.map((name) => valueAt(handler.parameters, name)).find((value) => value !== undefined);
  if (given(NAMES.encode) !== undefined)
    problem(["plugins", at, "parameters"], "expected no stage for encoding, which is not routed apart here");
  const order = given(NAMES.order);
  if (order !== undefined && order !== "decode-first")
    problem(["plugins", at, "parameters", "stageOrder"], `expected "decode-first", got ${shown(order)}`);
  const byDefault = handler.type === "pd-profile-handler" ? PREFIX_DECIDER : undefined;
  return {
    decode: given(NAMES.decode) ?? "decode",
    prefill: given(NAMES.prefill) ?? "prefill",
    divided: dividedBy(given(NAMES.decider) ?? byDefault, plugins, at, problem),
  };
}

/** A profile of two phases. */
export function inPhases(
  answers: PartialChooser,
  divided: NonNullable<LlmDPhases["divided"]>,
  prefill: PartialChooser,
): PartialProfile {
  return { ...answers, disaggregation: { ...divided, prefill } };
}

function dividedBy(
  decider: string | undefined,
  plugins: readonly DeclaredPlugin[],
  handlerAt: number,
  problem: (path: Path, message: string) => void,
): LlmDPhases["divided"] {
  if (decider === undefined) return undefined;
  const at = plugins.findIndex(({ name, type }) => (name ?? type) === decider);
  const found = plugins[at];
  if (found === undefined || !DECIDERS.has(found.type)) {
    const message = `expected the name of a ${[...DECIDERS].join(" or ")}, got ${shown(decider)}`;
    problem(["plugins", handlerAt, "parameters", "deciders"], message);
    return undefined;
  }
  const { nonCachedTokens = 0, promptTokens = 0, ...others } = found.parameters;
  for (const key of Object.keys(others))
    problem(["plugins", at, "parameters", key], `expected one of nonCachedTokens, promptTokens, got ${key}`);
  if (found.type !== PREFIX_DECIDER) return { colocateBelowTokens: 0, promptTokensMin: 0 };
  for (const [key, value] of Object.entries({ nonCachedTokens, promptTokens }))
    if (!(typeof value === "number" && Number.isSafeInteger(value) && value >= 0))
      problem(["plugins", at, "parameters", key], `expected a whole number of 0 or more, got ${shown(value)}`);
  // Its 0 divides nothing.
  if (nonCachedTokens === 0) return undefined;
  return { colocateBelowTokens: Number(nonCachedTokens), promptTokensMin: Number(promptTokens) };
}

function valueAt(parameters: DeclaredPlugin["parameters"], path: string): string | undefined {
  let value: unknown = parameters;
  for (const key of path.split(".")) {
    value = typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined;
  }
  return typeof value === "string" ? value : undefined;
}

/** A configuration as it is put together. */
interface Writing {
  refuse(reason: string): void;
  /** Returns the name to refer to it by. */
  declare(plugin: { readonly type: string; readonly parameters?: Readonly<Record<string, unknown>> }): string;
}

/** Who chooses between the two phases, and by what. */
export function writeHandlers(
  writing: Writing,
  { colocateBelowTokens, promptTokensMin, roles, handoff }: DisaggregationSpec,
): void {
  if (JSON.stringify(roles) !== JSON.stringify(ROLES_DEFAULT))
    writing.refuse(`disaggregation.roles: llm-d's roles are those of the label ${ROLES_DEFAULT.label}`);
  if (handoff !== "prefill-first")
    writing.refuse(`disaggregation.handoff: llm-d computes prompts first, got ${shown(handoff)}`);
  const decider = writing.declare(
    colocateBelowTokens === 0 && promptTokensMin === 0
      ? { type: "always-disagg-pd-decider" }
      : {
          type: "prefix-based-pd-decider",
          parameters: { nonCachedTokens: colocateBelowTokens, promptTokens: promptTokensMin },
        },
  );
  if (colocateBelowTokens === 0 && promptTokensMin > 0)
    writing.refuse("disaggregation.promptTokensMin: llm-d has it beside a colocateBelowTokens above 0 alone");
  writing.declare({
    type: "disagg-profile-handler",
    parameters: { profiles: { decode: "decode", prefill: "prefill" }, deciders: { prefill: decider } },
  });
}
