/** What a command could not do although it was asked rightly: a port in use, a lost disk. One line for people. */
export class CommandFailure extends Error {
  override readonly name = "CommandFailure";
}
