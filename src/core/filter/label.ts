import { filterPlugin } from "./filter.ts";

/** Keeps endpoints whose label has one of the given values; refuses when none has. */
export const label = filterPlugin({
  summary: "keeps endpoints by the value of a label",
  reads: ["labels"],
  source: "llm-d label-selector-filter and role filters",
  parameters: {
    key: { type: "string", default: "llm-d.ai/role", meaning: "name of the label" },
    values: {
      type: "string",
      default: "decode,prefill-decode,both,encode-prefill-decode",
      meaning: "accepted values, separated by commas",
    },
    allowMissing: { type: "boolean", default: true, meaning: "keep endpoints without the label" },
  },
  create(name, { key, values, allowMissing }) {
    const accepted = new Set(values.split(",").map((value) => value.trim()));
    return {
      name,
      byKind: true,
      filter(_request, candidates, keep) {
        candidates.forEach(({ endpoint }, i) => {
          const value = endpoint.labels[key];
          keep[i] = (value === undefined ? allowMissing : accepted.has(value)) ? 1 : 0;
        });
      },
    };
  },
});
