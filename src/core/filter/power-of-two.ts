import { filterPlugin } from "./filter.ts";

/** Keeps a few candidates drawn at random, all different; a load scorer then picks the better of them. */
export const powerOfTwo = filterPlugin({
  summary: "keeps candidates drawn at random",
  reads: ["none"],
  source: "power of two choices; SMG and AIBrix power-of-two",
  parameters: {
    choices: { type: "integer", default: 2, min: 1, meaning: "candidates drawn" },
  },
  create: (name, { choices }) => ({
    name,
    filter(_request, candidates, keep, random) {
      if (candidates.length <= choices) return;
      keep.fill(0, 0, candidates.length);
      for (let drawn = 0; drawn < choices;) {
        const i = random.below(candidates.length);
        if (keep[i] === 0) drawn++;
        keep[i] = 1;
      }
    },
  }),
});
