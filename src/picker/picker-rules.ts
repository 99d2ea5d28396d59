import type { ConnectionRules } from "./grpc/connection.ts";

/** How long a proxy's connections and calls may be, beside the gateway's own limits. */
export interface PickerRules extends Omit<ConnectionRules, "firstFrameMillisMax"> {
  /** From one message of a call to the next; a response may pass unseen meanwhile. */
  readonly callIdleMillisMax: number;
}

const MINUTE = 60_000;

/** As the configuration has them where it states nothing. */
export const PICKER_RULES: PickerRules = {
  connectionAgeMillisMax: 0,
  connectionGraceMillis: 10 * MINUTE,
  pingMillis: MINUTE,
  pingAnswerMillisMax: 20_000,
  callIdleMillisMax: 60 * MINUTE,
};
