import {readdirSync, readFileSync} from 'node:fs';
import {join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {expect, it} from 'vitest';
import {readTranslations} from '../src/translations';

const SRC = fileURLToPath(new URL('../src', import.meta.url));

/** Returns the English words of the panel by their ids. */
function readEnglish(): Map<string, string> {
  const files = readdirSync(SRC, {recursive: true}).map(String).filter((name) => /\.tsx?$/.test(name));
  const sources = files.map((name) => readFileSync(join(SRC, name), 'utf8')).join('\n');
  const calls = sources.matchAll(/id:\s*'(theme\.robotutor\.[\w.]+)',\s*message:\s*'([^']*)'/g);
  return new Map(Array.from(calls, ([, id = '', words = '']) => [id, words]));
}

const readNames = (words: string): string[] => (words.match(/\{\w+\}/g) ?? []).sort();

it.each(['de', 'es', 'fr', 'de-AT'])('all words have a translation to %s with the same names', (locale) => {
  const english = readEnglish();
  const translated = readTranslations(locale);
  expect(Object.keys(translated).sort()).toEqual([...english.keys()].sort());
  for (const [id, words] of english) {
    expect([id, readNames(translated[id] ?? '')]).toEqual([id, readNames(words)]);
  }
});

it('English needs no translation', () => {
  expect(readTranslations('en')).toEqual({});
});
