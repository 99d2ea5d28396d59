// The core as a library: three engines, and a prompt that one of them holds already. No clock, no sockets: time and news
// are arguments, so that the same calls give the same decisions.
import { Router } from "@gnomon-router/gnomon/core";
import { ApproximateIndex } from "@gnomon-router/gnomon/core/prefix/approximate";

const router = new Router({
  seed: 1,
  defaultProfile: "mine",
  profiles: {
    mine: {
      filters: [],
      scorers: [
        { plugin: "prefix-affinity", weight: 3, parameters: {} },
        { plugin: "queue-depth", weight: 2, parameters: {} },
      ],
      picker: { plugin: "max-score", parameters: {} },
    },
  },
  index: new ApproximateIndex(),
  blockTokens: 16,
  staleAfterMicros: 3_000_000,
});
for (const id of ["a", "b", "c"]) {
  const endpoint = { id, models: ["llama"], labels: {}, kvCapacityTokens: 100_000, concurrencyMax: 256 };
  router.accept({ kind: "endpoint-joined", at: 0, endpoint });
}
const ask = (id, at, hashes) => {
  const blocks = { hashes: Int32Array.from(hashes), length: hashes.length / 2, blockTokens: 16 };
  const who = { tenant: "", session: "", sloClass: "", priority: 0, profile: "" };
  const size = { promptTokens: blocks.length * 16, promptTokensExact: true, outputTokensMax: 100, sequences: 1 };
  return router.accept({ kind: "request-arrived", at, request: { id, model: "llama", ...who, ...size, blocks } });
};
const first = ask("r1", 1_000, [1, 1, 2, 2, 3, 3]);
const second = ask("r2", 2_000, [1, 1, 2, 2, 3, 3, 4, 4]);
console.log(first.endpoint, second.endpoint, second.hitTokens, second.reason);
