import { InvalidArgumentError, Option } from "commander";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import { ROUTER_SPREADS, type RouterSpread, type RoutersOptions } from "#sim/setting/routers-options.ts";
import { RARE } from "#drive/rare-option.ts";

export interface RouterFlags {
  /** Milliseconds, or none. */
  readonly shareLag: number | "none";
  readonly routerSpread: RouterSpread;
}

export const ROUTERS_MAX = 64;
const LAG_MILLIS_MAX = 1e7;
const LAG_MILLIS_DEFAULT = 10;

export const ROUTERS_MEANING = "gateways in front of the engines, with requests spread among them";

/** What goes with the number of routers. */
export function routerOptions(): readonly Option[] {
  return [
    new Option(
      "--share-lag <millis>",
      "delay until one of several routers knows what another one did, or none if it never does",
    )
      .argParser(shareLag)
      .default(LAG_MILLIS_DEFAULT)
      .helpGroup(RARE),
    new Option(
      "--router-spread <kind>",
      "which router gets a request: each in turn, or always the same one for a conversation, as over one connection",
    )
      .choices([...ROUTER_SPREADS])
      .default(ROUTER_SPREADS[0])
      .helpGroup(RARE),
  ];
}

/** Undefined for one router. */
export function routersOf(count: number, { shareLag: lag, routerSpread: spread }: RouterFlags) {
  if (count === 1) return undefined;
  const shareLagMicros = lag === "none" ? undefined : Math.round(lag * MICROS_PER_MILLI);
  return { count, shareLagMicros, spread } satisfies RoutersOptions;
}

/** As people name it: "4 routers, news after 10 ms". */
export function routersText(count: number, { shareLag: lag }: RouterFlags): string {
  const shared = lag === "none" ? "nothing shared" : `news after ${lag} ms`;
  return `${count} routers, ${shared}`;
}

function shareLag(text: string): number | "none" {
  if (text === "none") return "none";
  const value = text.trim() === "" ? NaN : Number(text);
  if (!(value >= 0 && value <= LAG_MILLIS_MAX)) {
    throw new InvalidArgumentError(`expected none, or a number of milliseconds from 0 to ${LAG_MILLIS_MAX}`);
  }
  return value;
}
