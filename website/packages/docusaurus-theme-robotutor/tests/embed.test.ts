import {mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {gzipSync} from 'node:zlib';
// @ts-expect-error The package has no types.
import {JSDOM, VirtualConsole} from 'jsdom';
import {afterAll, beforeAll, describe, expect, test} from 'vitest';

import {buildEmbed} from '../scripts/embed.mjs';

const MAX_BYTES = 120_000;

const folder = mkdtempSync(join(tmpdir(), 'robotutor-embed-'));
let script = '';
beforeAll(async () => {
  await buildEmbed(folder);
  script = readFileSync(join(folder, 'robotutor.js'), 'utf8');
});
afterAll(() => rmSync(folder, {recursive: true}));

/** Returns a plain page with the script tag, and the errors of its console. */
function openPage(attributes: string): {document: Document; errors: string[]} {
  const errors: string[] = [];
  const virtualConsole = new VirtualConsole();
  virtualConsole.on('error', (message: string) => errors.push(message));
  virtualConsole.on('jsdomError', (error: Error) => errors.push(error.message));
  const {window} = new JSDOM(`<h1>Notes</h1><script ${attributes}>${script}</script>`, {
    runScripts: 'dangerously',
    url: 'https://notes.example.org/page.html',
    virtualConsole,
    beforeParse: (page: Window) => {
      page.matchMedia = () => ({matches: false, addEventListener: () => undefined}) as never;
    },
  });
  return {document: window.document, errors};
}

test('the script with its styles is small, and KaTeX is a file of its own', () => {
  expect(gzipSync(script).length).toBeLessThanOrEqual(MAX_BYTES);
  expect(script.includes('.Panel_panel{')).toBe(true);
  const katex = readFileSync(join(folder, 'robotutor-katex.js'), 'utf8');
  expect([script, katex].map((text) => text.includes('Double superscript'))).toEqual([false, true]);
});

test('a page with the script tag has the element', () => {
  const {document, errors} = openPage('data-service="https://tutor.example.org"');
  expect(document.querySelectorAll('robo-tutor')).toHaveLength(1);
  expect(errors).toEqual([]);
});

describe('a mistake in the tag is one error, and the page stays whole', () => {
  test.each([
    ['', 'data-service="https://'],
    ['data-service=""', 'data-service="https://'],
    ['data-service="javascript:alert(1)"', 'javascript:alert(1)'],
    ['data-service="https://"', 'https://'],
    ['data-service="https://a.example" data-base-url="mailto:b"', 'data-base-url="mailto:b"'],
  ])('%s', (attributes, named) => {
    const {document, errors} = openPage(attributes);
    expect(errors).toEqual([expect.stringContaining(named)]);
    expect(document.querySelector('robo-tutor')).toBeNull();
    expect(document.querySelector('h1')?.textContent).toBe('Notes');
  });
});
