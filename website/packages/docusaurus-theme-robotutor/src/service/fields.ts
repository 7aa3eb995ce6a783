/**
 * Readers of JSON from outside this page, such as a newer service or an older version of the page.
 *
 * They never throw. A value of another type becomes the neutral value of its type.
 */

/** A JSON object. */
export type Fields = Record<string, unknown>;

/** Returns true for a JSON object, and false for an array or null. */
export const isRecord = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Returns a text, or an empty one. */
export const readText = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Returns a text that is not empty, or null. */
export const readName = (value: unknown): string | null => readText(value) || null;

/** Returns a finite number, or null. */
export const readNumber = (value: unknown): number | null =>
  typeof value === 'number' && Number.isFinite(value) ? value : null;

/** Returns the entries that a reader accepts. Entries for which it returns null are left out. */
export function readList<T>(value: unknown, read: (entry: unknown) => T | null): T[] {
  return Array.isArray(value)
    ? value.map(read).filter((entry): entry is Awaited<T> & T => entry !== null)
    : [];
}

/** Returns the result of a reader for an object, or null for any other value. */
export const readObject = <T>(value: unknown, read: (fields: Fields) => T | null): T | null =>
  isRecord(value) ? read(value) : null;

/** Returns a value that is one of the choices, or the fallback. */
export function readChoice<T extends string, F>(
  value: unknown,
  choices: readonly T[],
  fallback: F,
): T | F {
  return choices.find((choice) => choice === value) ?? fallback;
}

/** Returns an object with one field, or without it if the value is null. */
export function optional<Name extends string, T>(name: Name, value: T | null): {[key in Name]?: T} {
  return (value === null ? {} : {[name]: value}) as {[key in Name]?: T};
}
