import type { BegunChat } from "./prompt-chains.ts";
import type { LinearMessages } from "./linear-messages.ts";
import type { ChatTemplate, RenderOptions } from "./template/chat-template.ts";
import { contentTexts, engineMessages, type EngineMessage } from "./template/engine-messages.ts";
import { engineTools } from "./template/engine-tools.ts";
import { isRenderable } from "./template/renderable.ts";
import type { ChatMessage, PromptSource } from "./text/tokenizer.ts";
import type { WordStep } from "./text/word-source.ts";

type Chat = Extract<PromptSource, { kind: "chat" }>;

/** Fields of a body that a template reads by the same name. */
const VARIABLE_FIELDS = ["documents", "reasoning_effort"] as const;
const LAST_ROLE = "user";

/**
 * The steps of a plain chat, or of what follows its beginning, without rendering it; the tail is the template's. Undefined
 * where the chat is not plain, or the template not linear for it. Contents that the template looks into are the encoder's
 * to notice.
 */
export function linearSteps(
  chat: Chat,
  template: ChatTemplate,
  linear: LinearMessages,
  begun?: BegunChat,
): WordStep[] | undefined {
  const { messages } = chat;
  if (messages.at(-1)?.role !== LAST_ROLE || !hasPlainOptions(chat, template)) return undefined;
  const steps: WordStep[] = [];
  let previous = begun?.role;
  for (let at = begun?.messages ?? 0; at < messages.length; at++) {
    const message = messages[at]!;
    const frame = linear.between(previous, message.role);
    if (frame === undefined || !isPlain(message, template)) return undefined;
    const text = plainText(message, template);
    if (text === undefined) return undefined;
    steps.push({ tag: frame.tag, text });
    previous = message.role;
  }
  return steps;
}

/**
 * The rendered prompt; undefined where the engine will refuse it, where it is not of text alone, or where rendering it,
 * which cannot be done in turns, would take too long.
 */
export function renderedText(chat: Chat, template: ChatTemplate): string | undefined {
  if (!isRenderable(chat)) return undefined;
  const options = renderOptions(chat, template);
  const messages = engineMessages(chat.messages, template.reading.contentFormat);
  if (options === undefined || messages === undefined) return undefined;
  return template.render(withoutDevelopers(messages, template), options);
}

function hasPlainOptions({ tools, template: body }: Chat, { reading }: ChatTemplate): boolean {
  if (tools !== undefined && reading.mentions.has("tools")) return false;
  if (body["add_generation_prompt"] === false || body["continue_final_message"] === true) return false;
  for (const name of Object.keys(variablesOf(body))) if (reading.mentions.has(name)) return false;
  return true;
}

/** Nothing but a role and content, as far as the engine hands it on and the template reads it. */
function isPlain(message: ChatMessage, { reading: { mentions } }: ChatTemplate): boolean {
  for (const field in message) {
    if (field === "role" || field === "content") continue;
    const value = message[field];
    if (value === undefined || value === null) continue;
    if (field === "tool_calls") {
      if (Array.isArray(value) && value.length > 0) return false;
    } else if (field === "reasoning") {
      if (mentions.has(field) || mentions.has("reasoning_content")) return false;
    } else if ((field === "name" || field === "task") && mentions.has(field)) return false;
  }
  return true;
}

function plainText(message: ChatMessage, { reading }: ChatTemplate): string | undefined {
  const { content } = message;
  if (typeof content === "string" && message.role !== "system") return content;
  const texts = contentTexts(message, reading.contentFormat);
  if (texts === undefined) return undefined;
  if (reading.contentFormat === "string") return texts.join("\n");
  return texts.length === 1 ? texts[0] : undefined;
}

function renderOptions(chat: Chat, template: ChatTemplate): RenderOptions | undefined {
  const tools = chat.tools === undefined ? null : engineTools(chat.tools);
  if (tools === undefined) return undefined;
  const { mentions } = template.reading;
  const variables = Object.entries(variablesOf(chat.template)).filter(([name]) => mentions.has(name));
  return {
    tools,
    variables: Object.fromEntries(variables),
    addGenerationPrompt: chat.template["add_generation_prompt"] !== false,
    continueFinalMessage: chat.template["continue_final_message"] === true,
  };
}

/** What the engine passes on from a body, by the template's names. A null is as if it were not there. */
function variablesOf(body: Chat["template"]): Record<string, unknown> {
  const variables: Record<string, unknown> = {};
  const given = body["chat_template_kwargs"];
  if (typeof given === "object" && given !== null) Object.assign(variables, given);
  for (const field of VARIABLE_FIELDS) {
    const value = body[field];
    if (value !== undefined && value !== null) variables[field] = value;
  }
  const effort = body["reasoning_effort"];
  if (effort !== undefined && effort !== null && !("enable_thinking" in variables)) {
    variables["enable_thinking"] = effort !== "none";
  }
  return variables;
}

/** A template that does not know developers sees their messages as one system message, in front. */
function withoutDevelopers(messages: readonly EngineMessage[], { reading }: ChatTemplate): readonly EngineMessage[] {
  if (reading.mentions.has("developer") || !messages.some(({ role }) => role === "developer")) return messages;
  const isSystem = ({ role }: EngineMessage): boolean => role === "developer" || role === "system";
  const systems = messages.filter(isSystem);
  const alone = systems.length === 1 && isSystem(messages[0]!);
  if (alone) return messages.map((message) => (isSystem(message) ? asSystem(message) : message));
  const contents = systems.map(({ content }) =>
    typeof content === "string" ? content : content.map(({ text }) => text).join("\n"),
  );
  const merged = { role: "system", content: contents.filter((text) => text !== "").join("\n\n") };
  return [merged, ...messages.filter((message) => !isSystem(message))];
}

function asSystem(message: EngineMessage): EngineMessage {
  const { tools: _tools, ...rest } = message;
  return { ...rest, role: "system" };
}
