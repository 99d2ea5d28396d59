import { tokensOfEach } from "#core/latency/latency-model.ts";
import type { Micros } from "#core/base/units.ts";
import type { EnginePrompt } from "#engine/further-answer.ts";
import { WorkloadChains } from "#sim/source/workload-chains.ts";
import { firstPromptTokens, type WorkloadRequest } from "#trace/workload-request.ts";
import type { Observed } from "../recorded/observed.ts";

/** One request as its engine had it, and what its client saw. Times in microseconds; NaN is never or not seen. */
export interface Served {
  /** When its last endpoint was sent it, since the first request of the trace. */
  readonly arrivalAt: Micros;
  /** Position in the evidence's endpoints. */
  readonly endpoint: number;
  /** Of its first prompt, where it has several. */
  readonly promptTokens: number;
  /** The others. */
  readonly furtherPrompts?: readonly EnginePrompt[];
  /** Of one answer, where it had several side by side. */
  readonly outputTokens: number;
  /** Answers, where there were several. */
  readonly sequences?: number | undefined;
  /** As the engine reported them; NaN where it did not. */
  readonly cachedTokens: number;
  readonly ttftMicros: number;
  readonly e2eMicros: number;
  /** Answered whole: its times may be compared. The others count as load. */
  readonly ok: boolean;
  /** Blocks of the prompt and, where the next turn shows them, of the answer, at the engine's block size. */
  readonly hashes: Int32Array;
  /** False where the engine did not look into its cache. */
  readonly cacheRead?: boolean;
}

/** What a trace shows of engines: who served what and when, without the policy that chose. */
export interface Evidence {
  readonly endpoints: readonly string[];
  /** By arrival. */
  readonly rows: readonly Served[];
  /** Requests whose times are not usable, by reason. All but retried ones are not in the rows. */
  readonly left: Readonly<Record<string, number>>;
  /** Of several runs one after another, when each but the first begins; left out for one. */
  readonly laterRunsAt?: readonly Micros[];
}

/** What evidence is read from: a run, or what of it is asked about. */
export interface EvidenceSource {
  readonly workload: readonly WorkloadRequest[];
  /** In the workload's order. */
  readonly observed: readonly Observed[];
  readonly left: Readonly<Record<string, number>>;
  readonly header: { readonly router: { readonly seed: number } };
}

const RETRIED = "retried, and so load only";

/**
 * The requests of a run at the endpoints that served them, as far as `endpoints` names them (all where it is left out).
 * One that was retried is load where it ended up, from the time it was sent there. What it did to the endpoint that
 * failed is not known.
 */
export function evidenceOf(run: EvidenceSource, blockTokens: number, endpoints?: readonly string[]): Evidence {
  const { workload, observed } = run;
  const names = [...new Set(observed.map(({ endpoint }) => endpoint))]
    .filter((name) => name !== "" && (endpoints?.includes(name) ?? true))
    .sort();
  const left: Record<string, number> = { ...run.left };
  const chains = new WorkloadChains(blockTokens, run.header.router.seed);
  const rows: Served[] = [];
  workload.forEach((request, i) => {
    const seen = observed[i]!;
    const endpoint = names.indexOf(seen.endpoint);
    if (endpoint < 0) {
      const reason = seen.endpoint === "" ? "without an endpoint" : "at another endpoint";
      left[reason] = (left[reason] ?? 0) + 1;
      return;
    }
    const next = workload[i + 1]?.session === request.session ? workload[i + 1] : undefined;
    const prompt = chains.chainOf(request).hashes;
    const retried = seen.attempts > 1;
    if (retried) left[RETRIED] = (left[RETRIED] ?? 0) + 1;
    rows.push({
      arrivalAt: request.arrivalMicros + seen.retriedMicros,
      endpoint,
      promptTokens: firstPromptTokens(request),
      ...(request.tokensByPrompt && { furtherPrompts: chains.furtherPrompts(request) }),
      outputTokens: tokensOfEach(request.outputTokens, request.sequences ?? 1),
      ...(request.sequences !== undefined && { sequences: request.sequences }),
      cachedTokens: seen.cachedTokens,
      ttftMicros: seen.ttftMicros - seen.retriedMicros,
      e2eMicros: seen.e2eMicros - seen.retriedMicros,
      ok: seen.ok && !retried && seen.ttftMicros > 0 && seen.e2eMicros >= seen.ttftMicros,
      hashes: request.sequences === undefined ? chains.withAnswer(prompt, request, next) : prompt,
      ...(request.cacheRead === false && { cacheRead: false }),
    });
  });
  rows.sort((a, b) => a.arrivalAt - b.arrivalAt);
  return { endpoints: names, rows, left };
}

/** Of all its prompts. */
export function promptTokensOf({ promptTokens, furtherPrompts = [] }: Served): number {
  return furtherPrompts.reduce((sum, prompt) => sum + prompt.promptTokens, promptTokens);
}

/** Mean time per token after the first; NaN below two tokens. */
export function tpotOf({
  ttftMicros,
  e2eMicros,
  outputTokens,
}: Pick<Served, "ttftMicros" | "e2eMicros" | "outputTokens">): number {
  return outputTokens > 1 ? (e2eMicros - ttftMicros) / (outputTokens - 1) : NaN;
}
