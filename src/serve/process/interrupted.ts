/** Somebody stopped a command that was at work. What it left is stated in a line or more for people. */
export class Interrupted extends Error {
  override readonly name = "Interrupted";
  readonly exitCode: number;

  constructor(exitCode: number, message = "interrupted") {
    super(message);
    this.exitCode = exitCode;
  }
}
