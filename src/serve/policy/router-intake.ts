import type { Config } from "#config/schema.ts";
import { otherDecides } from "#config/tap-section.ts";
import type { Router } from "#core/router.ts";
import { framesOf } from "#live/log/frames-of.ts";
import { Intake } from "#live/base/intake.ts";
import type { FaultEvent, FaultLog } from "#live/log/fault-log.ts";
import { HeldIntake } from "#live/tap/held-intake.ts";

/** The way to the router: at once, or, beside another router, once it is known where that sent a request. */
export function intakeOf({ tap }: Config, router: Router, { report }: Pick<FaultLog, "report">): Intake {
  if (!otherDecides(tap)) return new Intake(router);
  const failed = (error: unknown): void => report(tapFailure(error));
  return new HeldIntake({ router, holdMillis: tap.holdMillis, holdBytesMax: tap.holdBytesMax, failed });
}

export function tapFailure(error: unknown): FaultEvent {
  const [frame = ""] = framesOf(error);
  return {
    kind: "tap-failed",
    detail: `${error instanceof Error ? error.name : "Error"} ${frame}`,
    done: "the request goes on; of it the trace may lack something",
  };
}
