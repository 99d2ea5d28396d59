/** What is wrong with what a person configured: all of it, a line each, ready to print. */
export class ConfigError extends Error {
  readonly lines: readonly string[];

  constructor(lines: readonly string[]) {
    super(lines.join("\n"));
    this.name = "ConfigError";
    this.lines = lines;
  }
}
