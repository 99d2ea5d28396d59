import type { EndpointDirectory, ServedModel } from "./endpoint-directory.ts";

/** The models of all endpoints together, each once, in order of first mention. */
export function servedModels(directory: EndpointDirectory): ServedModel[] {
  const union = new Map<string, ServedModel>();
  for (const entry of directory.all()) {
    for (const model of entry.models) if (!union.has(model.id)) union.set(model.id, model);
  }
  return [...union.values()];
}

/** The one model that is served, for requests that name none; undefined where there is a choice, or nothing. */
export function onlyModel(directory: EndpointDirectory): string | undefined {
  const models = servedModels(directory);
  return models.length === 1 ? models[0]!.id : undefined;
}

const ALIASES_SHOWN_MAX = 20;
const NAME_CHARACTERS_SHOWN_MAX = 200;

/** vLLM's words for a model that nobody serves. */
export function unknownModelMessage(directory: EndpointDirectory, model: string): string {
  const names = servedModels(directory).map(({ id }) => id);
  const shown = names.slice(0, ALIASES_SHOWN_MAX).join(", ") + (names.length > ALIASES_SHOWN_MAX ? ", ..." : "");
  return `The model \`${model.slice(0, NAME_CHARACTERS_SHOWN_MAX)}\` does not exist. Valid aliases: ${shown}.`;
}
