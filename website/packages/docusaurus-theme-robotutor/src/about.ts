/** What the service calls the assistant and its source. The panel's code asks for it. */

import {useSyncExternalStore} from 'react';

/** The names that a service has. */
export interface About {
  /** The assistant's name. */
  name: string;
  /** What its source is called, such as `documentation`. */
  source: string;
  /** The language of the service's sentences, such as `en`. */
  language: string;
}

let told: About | null = null;
const listeners = new Set<() => void>();

/** Takes the names that the service told; null for the words of the theme. */
export function setAbout(about: About | null): void {
  told = about;
  listeners.forEach((listener) => listener());
}

/** Returns what the service told so far. */
export const useAbout = (): About | null =>
  useSyncExternalStore(
    subscribe,
    () => told,
    () => null,
  );

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/**
 * Calls the book in an English text what the service calls it, and then fills in the values.
 *
 * Values come last, because a title or a name may contain the same word.
 */
export function nameSource(text: string, values: Record<string, string> = {}): string {
  const source = told?.language === 'en' ? told.source : 'book';
  const capital = source.charAt(0).toUpperCase() + source.slice(1);
  return text
    .replace(/\bbook\b/gi, (word) => (word === 'Book' ? capital : source))
    .replace(/\{(\w+)\}/g, (whole, key: string) => values[key] ?? whole);
}
