/**
 * A piece of a page as plain data, which a server writes as text and a browser shows as it is. Whatever is in it is text:
 * nothing that came from outside can become an element.
 */
export interface Markup {
  readonly tag: string;
  readonly attributes: Attributes;
  readonly children: readonly MarkupContent[];
}

/** Names are those of HTML and SVG; `on...` are handlers, which only a browser has; `key` names one among its siblings. */
export type Attributes = Readonly<Record<string, Attribute>>;
export type Attribute = string | number | boolean | undefined | ((event: never) => void);

/** Undefined and false leave nothing behind. */
export type MarkupContent = Markup | string | false | undefined;

export function element(
  tag: string,
  attributes: Attributes = {},
  ...children: readonly (MarkupContent | readonly MarkupContent[])[]
): Markup {
  return { tag, attributes, children: children.flat() };
}
