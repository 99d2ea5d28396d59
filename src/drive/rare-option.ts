import { Option } from "commander";

/** Headings of a command's options in its help; what is rare is shown by --help-all alone. */
export const COMMON = "Options:";
export const RARE = "Rare options:";

/** An option that few need, as `command.option` takes it. */
export function rareOption<T>(
  flags: string,
  meaning: string,
  parse?: ((text: string, before: T) => T) | string | boolean | number,
  otherwise?: unknown,
): Option {
  const option = new Option(flags, meaning).helpGroup(RARE);
  return typeof parse === "function" ? option.argParser(parse).default(otherwise) : option.default(parse);
}
