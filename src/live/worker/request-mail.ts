import type { RouteRequest } from "#core/request.ts";
import { sloWith } from "#core/slo.ts";
import type { MessageReader } from "./message-reader.ts";
import type { MessageWriter } from "./message-writer.ts";

const EXACT = 1;
const NO_CACHE_READ = 2;
const OWN_PROFILE = 4;
const UNDIVIDED = 8;

export function writeRequest(to: MessageWriter, request: RouteRequest): void {
  const { blocks, subset } = request;
  const exact = request.promptTokensExact ? EXACT : 0;
  const uncached = request.cacheRead === false ? NO_CACHE_READ : 0;
  const undivided = request.undivided === true ? UNDIVIDED : 0;
  to.byte(exact | uncached | undivided | (request.ownProfile === true ? OWN_PROFILE : 0));
  to.text(request.id);
  to.name(request.model);
  to.text(request.tenant);
  to.text(request.user ?? "");
  to.text(request.session);
  to.name(request.sloClass);
  to.name(request.profile);
  to.number(request.priority);
  to.number(request.promptTokens);
  to.optional(request.outputTokensMax);
  to.optional(request.timeoutMicros);
  to.optional(request.slo?.ttftMicros);
  to.optional(request.slo?.tpotMicros);
  to.number(request.sequences);
  to.number(blocks.blockTokens);
  to.words(blocks.hashes.subarray(0, 2 * blocks.length));
  to.number(subset === undefined ? -1 : subset.length);
  for (const endpoint of subset ?? []) to.name(endpoint);
}

export function readRequest(from: MessageReader): RouteRequest {
  const flags = from.byte();
  const id = from.text();
  const model = from.name();
  const tenant = from.text();
  const user = from.text();
  const session = from.text();
  const sloClass = from.name();
  const profile = from.name();
  const priority = from.number();
  const promptTokens = from.number();
  const outputTokensMax = from.optional();
  const timeoutMicros = from.optional();
  const slo = sloWith(from.optional(), from.optional());
  const sequences = from.number();
  const blockTokens = from.number();
  const hashes = from.words();
  const subset = endpointsOf(from);
  return {
    id,
    model,
    tenant,
    ...(user !== "" && { user }),
    session,
    sloClass,
    priority,
    promptTokens,
    promptTokensExact: (flags & EXACT) !== 0,
    outputTokensMax,
    sequences,
    blocks: { hashes, length: hashes.length / 2, blockTokens },
    ...((flags & NO_CACHE_READ) !== 0 && { cacheRead: false }),
    ...(timeoutMicros !== undefined && { timeoutMicros }),
    ...(slo !== undefined && { slo }),
    ...(subset !== undefined && { subset }),
    profile,
    ...((flags & UNDIVIDED) !== 0 && { undivided: true }),
    ...((flags & OWN_PROFILE) !== 0 && { ownProfile: true }),
  };
}

function endpointsOf(from: MessageReader): string[] | undefined {
  const count = from.number();
  return count < 0 ? undefined : Array.from({ length: count }, () => from.name());
}
