/** The link to a person, from a template of the site such as `mailto:help@example.org?body={question}`. */

/** Characters of a question in an address. Mail programs and servers cut longer addresses. */
const MAX_CHARS = 1000;

const PLACEHOLDER = /\{(question|page)\}/g;

/** The values of the placeholders `{question}` and `{page}`. */
export interface ContactFields {
  question: string;
  page: string;
}

/**
 * Returns the address for a question; null if the template is not safe.
 *
 * Only `http:`, `https:` and `mailto:` are allowed, and no placeholder may change where the link
 * leads. The values are escaped.
 */
export function fillContact(template: string, fields: ContactFields): string | null {
  const fill = (read: (name: keyof ContactFields) => string): URL | null => {
    try {
      return new URL(
        template.replace(PLACEHOLDER, (_, name: keyof ContactFields) =>
          encodeURIComponent(read(name)),
        ),
      );
    } catch {
      return null;
    }
  };
  const [one, other] = [fill(() => 'a'), fill(() => 'b')];
  const isSame = one?.origin === other?.origin && one?.pathname === other?.pathname;
  if (!one || !isSame || !/^(?:https?|mailto):$/.test(one.protocol)) {
    return null;
  }
  // A line break in the head of a mail would begin another field.
  const oneLine = (text: string): string =>
    text.replace(/\s+/g, ' ').slice(0, MAX_CHARS).replace(/\p{Surrogate}/gu, '');
  return fill((name) => oneLine(fields[name]))?.href ?? null;
}
