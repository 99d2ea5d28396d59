/** How replicas reach one another: whoever listens gets every report, the own ones too, in one order. */
export interface ShareLink {
  /** Of what it goes over, for people: "Redis at 10.0.0.7:6379". */
  readonly name: string;
  start(listener: ShareListener): void;
  /** Whether a report would be taken; false while there is no connection, or too much waits. */
  readonly takes: boolean;
  /** Sends a report; never throws, and never waits. What comes of it is reported by `sent` or `failed`. */
  send(report: Buffer): void;
  /** What was sent is taken and does not come back: whoever is read from is not who was written to. It begins anew. */
  renew(why: string): void;
  /** What was sent is sent, as far as the link is well; nothing comes any more. */
  stop(): Promise<void>;
}

export interface ShareListener {
  /** A report. `isPast`: it is from before this replica listened, or while it could not. */
  received(report: Buffer, isPast: boolean): void;
  /** All that had been sent before is read; from here on it is as it comes. */
  caughtUp(): void;
  /** Reports can be sent and read. */
  connected(): void;
  /** They cannot; why, in a few words. */
  lost(why: string): void;
}
