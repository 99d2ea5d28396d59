import { Template } from "@huggingface/jinja";
import { isObject, type JsonObject } from "../http/body.ts";
import { ApiError } from "../http/api-error.ts";
import type { ChatPrompt } from "./chat-prompt.ts";

/** A model's Jinja chat template. */
export class PromptTemplate {
  /** The token that ends an answer, as text. */
  readonly endText: string;
  readonly #template: Template;
  readonly #variables: JsonObject;

  /** Throws an Error naming `path` for a template that does not parse. */
  constructor(text: string, config: JsonObject, path: string) {
    try {
      this.#template = new Template(text);
    } catch (error) {
      const reason = error instanceof Error ? error.message : "does not parse";
      throw new Error(`${path}: chat template: ${reason}`, { cause: error });
    }
    this.endText = tokenText(config["eos_token"]);
    this.#variables = { bos_token: tokenText(config["bos_token"]), eos_token: this.endText };
  }

  /** The conversation as text. Throws ApiError 400 when the template refuses it. */
  render(prompt: ChatPrompt): string {
    const messages = prompt.messages.map(({ source, content }) => ({ ...source, content }));
    const text = this.#render(prompt, messages);
    const last = prompt.messages.at(-1);
    if (!prompt.continueFinalMessage || last === undefined) return text;
    return text.slice(0, text.lastIndexOf(last.content.trim()) + last.content.trim().length);
  }

  #render(prompt: ChatPrompt, messages: readonly unknown[]): string {
    try {
      return this.#template.render({
        ...this.#variables,
        ...prompt.variables,
        messages,
        tools: prompt.tools ?? null,
        documents: null,
        add_generation_prompt: prompt.addGenerationPrompt,
      });
    } catch (error) {
      throw new ApiError(400, "BadRequestError", error instanceof Error ? error.message : "chat template failed");
    }
  }
}

/** A special token is a string, or an object that holds one. */
function tokenText(value: unknown): string {
  const content = isObject(value) ? value["content"] : value;
  return typeof content === "string" ? content : "";
}
