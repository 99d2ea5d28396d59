import { Option } from "commander";
import { PATH_RULES, type PathRules } from "#core/path/path-rules.ts";
import { STAGE_SETTINGS } from "#core/stages.ts";
import type { StageFlag, StageSetting } from "#core/path/stage-kind.ts";
import { RARE } from "#drive/rare-option.ts";
import { amountFlag, shareFlag } from "./flag-number.ts";
import { listFlag } from "./list-flag.ts";

const MILLIS_MAX = 1e8;

/** A setting of a stage that has a flag. */
type Flagged = StageSetting & { readonly key: string; readonly flag: StageFlag };

const FLAGGED: readonly Flagged[] = STAGE_SETTINGS.flatMap(([key, setting]) => {
  const { flag } = setting;
  return flag === undefined ? [] : [{ ...setting, key, flag }];
});

/** What was given, by the flags' names as commander has them. */
export type StageFlags = object;

/** A value of each, for one run. */
export function stageOptions(): readonly Option[] {
  return FLAGGED.map((one) => optionOf(one, one.flag.meaning, parserOf(one), one.usual));
}

/** Values of those that switch a stage on are asked about, one after another. */
export function askedStageOptions(again: string): readonly Option[] {
  return FLAGGED.map((one) => {
    const { meaning, asks } = one.flag;
    if (asks === undefined) return optionOf(one, meaning, parserOf(one), one.usual);
    const list = listFlag(parserOf(one));
    return optionOf(
      one,
      `ask about a gateway that is to ${meaning}; ${again}`,
      (text, before) => list(text, before as readonly number[]),
      [],
    );
  });
}

type Parser = Parameters<Option["argParser"]>[0];

function optionOf({ flag }: Flagged, meaning: string, parser: Parser, usual: unknown) {
  const option = new Option(flag.flags, meaning).argParser(parser).helpGroup(RARE);
  return usual === undefined ? option : option.default(usual);
}

function parserOf({ kind, min }: Flagged): (text: string) => number {
  return kind === "share" ? shareFlag : amountFlag(min, MILLIS_MAX);
}

function valueOf(flags: StageFlags, { flag }: Flagged): unknown {
  return Reflect.get(flags, new Option(flag.flags).attributeName());
}

/** Rules with what flags set, `rules` where they switch no stage on. */
export function stageRules(flags: StageFlags, rules: PathRules | undefined): PathRules | undefined {
  const isOn = FLAGGED.some((one) => one.flag.asks !== undefined && valueOf(flags, one) !== undefined);
  return isOn
    ? withSettings(
        rules,
        FLAGGED.map((one) => [one.key, valueOf(flags, one)]),
      )
    : rules;
}

function withSettings(rules: PathRules = PATH_RULES, settings: readonly (readonly [string, unknown])[]): PathRules {
  const given = settings.filter(([, value]) => value !== undefined);
  return { ...rules, settings: { ...rules.settings, ...(Object.fromEntries(given) as PathRules["settings"]) } };
}

/** Each value that is asked about, with the other flags as they are. */
export function askedStageRules(flags: StageFlags): { readonly label: string; readonly rules: PathRules }[] {
  const others = FLAGGED.filter(({ flag }) => flag.asks === undefined);
  return FLAGGED.flatMap((one) => {
    const [before, after] = one.flag.asks ?? [];
    if (before === undefined) return [];
    return (valueOf(flags, one) as readonly number[]).map((value) => {
      const set = [...others.map((other) => [other.key, valueOf(flags, other)] as const), [one.key, value] as const];
      return { label: `${before} ${value} ${after}`, rules: withSettings(undefined, set) };
    });
  });
}

/** The flags that switch stages on, and whether they were given. */
export function stagesAsked(flags: StageFlags): (readonly [flag: string, given: boolean])[] {
  return FLAGGED.filter(({ flag }) => flag.asks !== undefined).map((one) => {
    return [new Option(one.flag.flags).long!, valueOf(flags, one) !== undefined] as const;
  });
}
