import { imbalance } from "../filter/imbalance.ts";
import { maxScore } from "../picker/max-score.ts";
import { randomPicker } from "../picker/random.ts";
import { roundRobin } from "../picker/round-robin.ts";
import { kvUtilization } from "../scorer/kv-utilization.ts";
import { loadBalance } from "../scorer/load-balance.ts";
import { prefixAffinity } from "../scorer/prefix-affinity.ts";
import { queueDepth } from "../scorer/queue-depth.ts";

/** Every plugin by the name that profiles use. The only list of names. */
export const CATALOG = {
  filters: {
    imbalance,
  },
  scorers: {
    "prefix-affinity": prefixAffinity,
    "queue-depth": queueDepth,
    "kv-utilization": kvUtilization,
    "load-balance": loadBalance,
  },
  pickers: {
    "max-score": maxScore,
    random: randomPicker,
    "round-robin": roundRobin,
  },
} as const;
