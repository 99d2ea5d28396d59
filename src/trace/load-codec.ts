import type { Load } from "#core/endpoint/endpoint.ts";
import type { Fields } from "./fields.ts";
import { number } from "./number.ts";

/** What an engine reported of itself; what is unknown is left out. */
export function encodeLoad(load: Load): string {
  let text = "";
  for (const [name, value] of Object.entries(load)) {
    if (value === undefined) continue;
    text += `${text === "" ? "" : ","}"${name}":${typeof value === "number" ? number(value) : JSON.stringify(value)}`;
  }
  return `{${text}}`;
}

export function decodeLoad(fields: Fields): Load {
  return {
    running: fields.optionalNumber("running"),
    waiting: fields.optionalNumber("waiting"),
    kvUtilization: fields.optionalNumber("kvUtilization"),
    prefixHitRatio: fields.optionalNumber("prefixHitRatio"),
    ttftMicros: fields.optionalNumber("ttftMicros"),
    tpotMicros: fields.optionalNumber("tpotMicros"),
    tokensPerSecond: fields.optionalNumber("tokensPerSecond"),
    adaptersRunning: fields.optionalStrings("adaptersRunning"),
    adaptersWaiting: fields.optionalStrings("adaptersWaiting"),
    adaptersMax: fields.optionalNumber("adaptersMax"),
    watts: fields.optionalNumber("watts"),
    smUtilization: fields.optionalNumber("smUtilization"),
  };
}
