import type { Micros } from "#core/base/units.ts";
import type { Intake } from "#live/base/intake.ts";
import { BlockSize } from "#live/endpoints/block-size.ts";
import type { FaultLog } from "#live/log/fault-log.ts";
import { part } from "../assembly/part.ts";
import type { GatewayContext } from "../plan/gateway-context.ts";
import type { Tokenizers } from "./tokenizers.ts";

interface Needed extends Pick<GatewayContext, "plan"> {
  readonly tokenizers: Tokenizers;
  readonly intake: Intake;
  readonly logs: { readonly faults: FaultLog };
}

/** Tokens per block, as configured or as the engines report. */
export const blockSizesPart = part({
  name: "blockSizes",
  needs: ["plan", "tokenizers", "intake", "logs"],
  start: ({ plan, tokenizers, intake, logs }: Needed) => {
    const change = (blockTokens: number, at: Micros): void => {
      tokenizers.resizeBlocks(blockTokens);
      intake.accept({ kind: "block-size-changed", at, blockTokens });
    };
    return new BlockSize({ configured: plan.config.prefix.blockTokens, change, report: logs.faults.report });
  },
});
