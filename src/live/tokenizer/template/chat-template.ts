import { Template } from "@huggingface/jinja";
import type { EngineMessage } from "./engine-messages.ts";
import { pythonStrip } from "./python-strip.ts";
import { STRIP_FUNCTIONS, withPythonStripping } from "./python-stripping.ts";
import { readTemplate, type TemplateReading } from "./template-reading.ts";

export interface RenderOptions {
  readonly tools: readonly unknown[] | null;
  /** What else the template may read: chat_template_kwargs and the like. */
  readonly variables: Readonly<Record<string, unknown>>;
  readonly addGenerationPrompt: boolean;
  /** The last message is left open for the model to go on with. */
  readonly continueFinalMessage: boolean;
}

export const PLAIN_RENDER: RenderOptions = {
  tools: null,
  variables: {},
  addGenerationPrompt: true,
  continueFinalMessage: false,
};

const CONTINUE_TAG = "CONTINUE_FINAL_MESSAGE_TAG ";

/** A model's chat template, parsed once. */
export class ChatTemplate {
  readonly reading: TemplateReading;
  readonly #template: Template;
  readonly #specialTokens: Readonly<Record<string, string>>;

  /** `specialTokens` are bos_token, eos_token and the like. Throws an error where the source is no template. */
  constructor(source: string, specialTokens: Readonly<Record<string, string>>) {
    this.#template = new Template(source);
    this.#specialTokens = specialTokens;
    this.reading = readTemplate(this.#template.parsed);
    withPythonStripping(this.#template.parsed);
  }

  /** The text that the engine tokenizes; undefined where the template refuses, as the engine then does. */
  render(messages: readonly EngineMessage[], options: RenderOptions): string | undefined {
    const shown = options.continueFinalMessage ? withOpenEnd(messages) : messages;
    if (shown === undefined) return undefined;
    let rendered: string;
    try {
      rendered = this.#template.render({
        ...STRIP_FUNCTIONS,
        ...this.#specialTokens,
        ...options.variables,
        messages: shown,
        tools: options.tools,
        documents: options.variables["documents"] ?? null,
        add_generation_prompt: options.addGenerationPrompt,
      });
    } catch {
      return undefined;
    }
    return options.continueFinalMessage ? cutAtOpenEnd(rendered) : rendered;
  }
}

function withOpenEnd(messages: readonly EngineMessage[]): EngineMessage[] | undefined {
  const last = messages.at(-1);
  if (last === undefined) return undefined;
  const { content } = last;
  if (typeof content === "string") return [...messages.slice(0, -1), { ...last, content: content + CONTINUE_TAG }];
  const part = content.at(-1);
  if (part === undefined) return undefined;
  const parts = [...content.slice(0, -1), { ...part, text: part.text + CONTINUE_TAG }];
  return [...messages.slice(0, -1), { ...last, content: parts }];
}

function cutAtOpenEnd(rendered: string): string | undefined {
  const at = rendered.lastIndexOf(CONTINUE_TAG.trimEnd());
  if (at < 0) return undefined;
  return rendered.startsWith(CONTINUE_TAG, at) ? rendered.slice(0, at) : pythonStrip(rendered.slice(0, at), "right");
}
