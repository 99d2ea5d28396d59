/** What is shared: a text and how often it was replaced. */
export interface SharedText {
  /** Counts up from 1. */
  readonly revision: number;
  readonly text: string;
}

/** A text of a log, with its place there. */
export interface LoggedText {
  readonly id: string;
  readonly text: string;
}

/** Before the first text of a log. */
export const LOG_START = "0-0";

/** Where the replicas of a gateway keep what all of them follow, by key. Values are small and change seldom. */
export interface SharedStore {
  /** Undefined where there is none. Rejects where it cannot be asked. */
  read(key: string): Promise<SharedText | undefined>;
  /**
   * Replaces a value whose revision is still that one (0: there is none) and returns the new revision; undefined where
   * somebody else was quicker, and then nothing has changed. Rejects where nobody knows whether it was replaced.
   */
  replace(key: string, revision: number, text: string): Promise<number | undefined>;
  /** Adds to a log that keeps about the last `textsMax`. Rejects where nobody knows whether it was added. */
  append(key: string, text: string, textsMax: number): Promise<void>;
  /** Place of the last text of a log; LOG_START where it has none. */
  logEnd(key: string): Promise<string>;
  /** What a log has after a place, in its order, at most so many. */
  readLog(key: string, after: string, textsMax: number): Promise<readonly LoggedText[]>;
}
