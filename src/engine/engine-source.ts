/** The run of a recorder, or an imported one, that an engine file was fitted to. */
export interface SourceRun {
  /** As the trace names it. */
  readonly run: string;
  /** ISO 8601, UTC; left out where the trace does not state it. */
  readonly startedAt?: string | undefined;
  /** What distinguishes machines and names none. */
  readonly machine?: string | undefined;
  readonly engineVersion?: string | undefined;
}

/** Where an engine file comes from. */
export interface EngineSource {
  readonly runs: readonly SourceRun[];
}
