import {readTranslations} from '../src/translations';
import {readSite} from './site';

let translations: Record<string, string> | undefined;

/** Returns a message in the language of the panel, with its placeholders filled in. */
export function translate(
  {id, message}: {id: string; message: string},
  values: Record<string, string | number> = {},
): string {
  translations ??= readTranslations(readSite().language);
  const words = translations[id] ?? message;
  return words.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}
