/** What is shared: a text and how often it was replaced. */
export interface SharedText {
  /** Counts up from 1. */
  readonly revision: number;
  readonly text: string;
}

/** Where the replicas of a gateway keep what all of them follow, by key. Values are small and change seldom. */
export interface SharedStore {
  /** Undefined where there is none. Rejects where it cannot be asked. */
  read(key: string): Promise<SharedText | undefined>;
  /**
   * Replaces a value whose revision is still that one (0: there is none) and returns the new revision; undefined where
   * somebody else was quicker, and then nothing has changed. Rejects where nobody knows whether it was replaced.
   */
  replace(key: string, revision: number, text: string): Promise<number | undefined>;
}
