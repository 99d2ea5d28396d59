import type { ServePlan } from "./serve-options.ts";

/** What the request asks for where that is allowed, else what its model has, else the default. */
export function profileChooser({ config, profiles }: ServePlan): (model: string, asked: string) => string {
  const { models, profilesAllowed } = config.routing;
  const nameOf = (key: string): string => profiles[key]?.name ?? "";
  const allowed = new Map(profilesAllowed.flatMap((key) => [key, nameOf(key)].map((name) => [name, nameOf(key)])));
  const byModel = new Map(Object.entries(models).map(([model, key]) => [model, nameOf(key)]));
  return (model, asked) => (asked === "" ? undefined : allowed.get(asked)) ?? byModel.get(model) ?? "";
}
