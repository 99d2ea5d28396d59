/** How a workload is read; every reader takes the same options and uses what concerns it. */
export interface ImportOptions {
  /** Of everything that a reader draws: arrivals inside a grid cell, session starts, synthetic lengths. */
  readonly seed: number;
  /** Refuse the workload at its first unusable record instead of counting it. */
  readonly strict: boolean;
  /**
   * Arrival timestamps lie on a grid of so many milliseconds and are spread over its cells. "auto" looks at the first
   * records; 0 takes timestamps as they are. Mooncake.
   */
  readonly gridMillis: number | "auto";
  /** Session starts per second (Poisson) where a trace has no common clock: WEKA and folders of LMCache files. */
  readonly sessionsPerSecond: number;
  /**
   * Share of the tool and system prompt that all sessions are given in common, in [0, 1]. WEKA's block ids are local to
   * a session, so a prefix that real users share is not visible in them.
   */
  readonly sharedPrefix: number;
  /** Characters a token, to estimate lengths where a trace has text. LMCache. */
  readonly charsPerToken: number;
  /** Keys block ids that are made from a run's prompts: without it nobody can know which prompt an id stands for. */
  readonly key: string;
}

export const IMPORT_DEFAULTS: ImportOptions = {
  seed: 0,
  strict: false,
  gridMillis: "auto",
  sessionsPerSecond: 1,
  sharedPrefix: 0,
  charsPerToken: 4,
  key: "",
};
