import type { EndpointId } from "../endpoint/endpoint.ts";
import type { Micros } from "../base/units.ts";
import type { Slo } from "./slo.ts";
import type { BlockChain } from "../prompt/block-chain.ts";

/**
 * What a client declared, as far as routing may know it. It has no output length: the simulator keeps that ground truth
 * in another type, so that no policy can read it.
 */
export interface RouteRequest {
  /** Unique among requests in flight. */
  readonly id: string;
  /** Model or LoRA adapter, as the client named it. */
  readonly model: string;
  /** Who asks; "" when unknown. */
  readonly tenant: string;
  /** Who asks within the tenant; absent when unknown. */
  readonly user?: string;
  /** Conversation that the client named; "" when it named none. */
  readonly session: string;
  /** Service class, for example "critical" or "batch"; "" when unset. */
  readonly sloClass: string;
  /** vLLM's priority: lower runs earlier. */
  readonly priority: number;
  /** Prompt length; an estimate unless `promptTokensExact`. */
  readonly promptTokens: number;
  readonly promptTokensExact: boolean;
  /** The client's ceiling on generated tokens, if it gave one. */
  readonly outputTokensMax: number | undefined;
  /** Engine requests that this one fans out to: prompts times n. */
  readonly sequences: number;
  /**
   * Of a completion with several prompts, each one's tokens, about as many as `promptTokens` together; absent where it has
   * one. An estimate, but of the first, whose blocks `blocks` are.
   */
  readonly tokensByPrompt?: readonly number[];
  readonly blocks: BlockChain;
  /**
   * False where the engine computes the whole prompt whatever its cache holds, as for prompt log-probabilities; it stores
   * the prompt's blocks all the same. Absent: it reads its cache.
   */
  readonly cacheRead?: boolean;
  /** From its arrival, after which its client has no use for the answer; absent where it stated none. */
  readonly timeoutMicros?: Micros;
  /** What it is promised, where its client stated that. */
  readonly slo?: Slo;
  /** Endpoints that the data plane in front of it allows; absent where it may go anywhere. */
  readonly subset?: readonly EndpointId[];
  /** Profile that the host selected for this request; "" is the router's default. */
  readonly profile: string;
  /** One endpoint has to compute its prompt and answer, as for an embedding. Absent: two may share it. */
  readonly undivided?: true;
  /** The client chose the profile, so no rollout changes it. Absent: it did not. */
  readonly ownProfile?: true;
}
