import fc from 'fast-check';
import {describe, expect, it} from 'vitest';
import {readAddress} from '../src/addresses';

const ORIGIN = 'https://example.org';

describe('readAddress', () => {
  it.each([
    ['/book/a?b#c', '/book/a?b#c', true],
    ['https://example.org/book/a', '/book/a', true],
    ['https://other.org/a', 'https://other.org/a', false],
    ['http://other.org', 'http://other.org/', false],
    ['mailto:a@b.org', 'mailto:a@b.org', false],
  ])('keeps %s', (url, href, internal) => {
    expect(readAddress(url, ORIGIN)).toEqual({href, internal});
  });

  it.each([
    'javascript:alert(1)',
    ' JaVaScRiPt:alert(1)',
    'java\nscript:alert(1)',
    'data:text/html,x',
    'vbscript:x',
    'blob:https://example.org/x',
    'file:///etc/passwd',
    '//evil.org/x',
    '/\\evil.org',
    '/\t/evil.org',
    '/.//evil.org',
    'https:/\\evil.org',
    'page.md',
    '../page',
    '#anchor',
    '',
    'http://',
  ])('drops %j', (url) => {
    expect(readAddress(url, ORIGIN)).toBeNull();
  });

  it('keeps only addresses that lead where they say', () => {
    const part = fc.constantFrom('/', '\\', '.', ':', '//', 'javascript', 'https', '\t', '@', 'a', '#');
    fc.assert(
      fc.property(fc.array(part, {maxLength: 10}), (parts) => {
        const address = readAddress(parts.join(''), ORIGIN);
        const used = address && new URL(address.href, ORIGIN);
        if (used) {
          expect(['http:', 'https:', 'mailto:']).toContain(used.protocol);
          expect(used.origin === ORIGIN).toBe(address.internal);
        }
      }),
      {numRuns: 2000},
    );
  });
});
