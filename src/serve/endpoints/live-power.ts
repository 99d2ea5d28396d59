import { nowMicros } from "#live/base/clock.ts";
import { PowerKeeper } from "#live/scrape/power-keeper.ts";
import { part } from "../assembly/part.ts";
import type { GatewayContext } from "../plan/gateway-context.ts";

/** What GPUs draw, as exporters report it. */
export const powerPart = part({
  name: "power",
  needs: ["plan"],
  start: ({ plan }: Pick<GatewayContext, "plan">) => {
    const keeper = new PowerKeeper({ ...plan.config.power, now: nowMicros });
    keeper.start();
    return keeper;
  },
  stop: (power) => power.stop(),
});
