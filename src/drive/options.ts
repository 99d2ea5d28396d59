import { FIT_DEFAULTS, type FitOptions } from "#trace/import/fit-workload.ts";
import { IMPORT_DEFAULTS, type ImportOptions } from "#trace/import/import-options.ts";
import type { PromptForm } from "./prompt-writer.ts";

export interface DriveOptions {
  /** Base URLs, taken in turn. */
  readonly urls: readonly string[];
  /** Trace file, folder of sessions, or specification. */
  readonly workload: string;
  readonly import: ImportOptions;
  readonly fit: FitOptions;
  /** "" asks the first URL for /v1/models and takes the first. */
  readonly model: string;
  /** Requests whose trace names a model ask for that one. */
  readonly traceModels: boolean;
  readonly api: "completions" | "chat";
  readonly promptForm: PromptForm;
  readonly charsPerToken: number;
  readonly vocabularyTokens: number;
  readonly stream: boolean;
  /** Asks for exactly the recorded number of tokens with vLLM's ignore_eos and min_tokens. */
  readonly forceOutput: boolean;
  readonly seed: number;
  /** Requests read from the workload at most. */
  readonly requestsMax: number;
  readonly rateScale: number;
  readonly timeScale: number;
  /** Requests in flight at most. */
  readonly concurrency: number;
  /** Conversations under way at most; the next one starts when one ends. */
  readonly activeSessionsMax: number;
  /** No request is sent after this. */
  readonly durationSeconds: number;
  /** What is in flight when the run is over gets so long to end. */
  readonly drainSeconds: number;
  /** The driver closes a request that takes longer; 0 for never. */
  readonly timeoutSeconds: number;
  /** Share of requests that the driver closes on purpose, at a random point of the answer. */
  readonly abortFraction: number;
  /** Name of the header that carries the session; "" sends none. */
  readonly sessionHeader: string;
  readonly tenantHeader: string;
  readonly sloHeader: string;
  /** Sent with every request. */
  readonly headers: Readonly<Record<string, string>>;
  /** Failures that are no failure of the run, by outcome ("http-429"). */
  readonly expected: ReadonlySet<string>;
  /** File that gets a JSON line a request; undefined for none. */
  readonly requestsOut: string | undefined;
}

export const DRIVE_DEFAULTS: Omit<DriveOptions, "urls" | "workload"> = {
  import: IMPORT_DEFAULTS,
  fit: FIT_DEFAULTS,
  model: "",
  traceModels: false,
  api: "completions",
  promptForm: "text",
  charsPerToken: 4,
  vocabularyTokens: 16_000,
  stream: true,
  forceOutput: true,
  seed: 0,
  requestsMax: Number.POSITIVE_INFINITY,
  rateScale: 1,
  timeScale: 1,
  concurrency: 512,
  activeSessionsMax: 64,
  durationSeconds: Number.POSITIVE_INFINITY,
  drainSeconds: 30,
  timeoutSeconds: 600,
  abortFraction: 0,
  sessionHeader: "x-session-id",
  tenantHeader: "x-gnomon-tenant",
  sloHeader: "x-gnomon-slo-class",
  headers: {},
  expected: new Set(),
  requestsOut: undefined,
};
