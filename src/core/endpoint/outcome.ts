/**
 * ok: complete. failed: broke after the last attempt. aborted: the client left. timeout: a limit of ours. refused: never
 * placed, or turned down by the engine as the client's own mistake.
 */
export type Outcome = "ok" | "failed" | "aborted" | "timeout" | "refused";
