/** One message of a conversation, its content flattened to text. */
export interface TemplateMessage {
  readonly role: string;
  readonly content: string;
  /** The message as the client sent it, for templates that look at more than role and content. */
  readonly source: Readonly<Record<string, unknown>>;
}

/** What a chat template is applied to. */
export interface ChatPrompt {
  readonly messages: readonly TemplateMessage[];
  readonly tools: readonly unknown[] | undefined;
  readonly addGenerationPrompt: boolean;
  readonly continueFinalMessage: boolean;
  /** Extra variables of the template. */
  readonly variables: Readonly<Record<string, unknown>>;
}
