import {describe, expect, it} from 'vitest';
import {dropAskLink, makeAskLink, readAskLink} from '../../src/panel/askLink';

const PAGE = {origin: 'https://book.example', pathname: '/docs/here'};

describe('a link that asks', () => {
  it.each([
    [undefined, 'book'],
    [{doc_paths: ['a.md']}, 'page'],
    [{modules: ['m']}, 'module'],
  ] as const)('with the filters %j asks the %s', (filters, scope) => {
    const question = 'Why & how? למה';
    const asked = {question, pageUrl: '/docs/there', ...(filters ? {filters: filters as object} : {})};
    const link = new URL(makeAskLink(asked, PAGE));
    expect(link.origin + link.pathname).toBe('https://book.example/docs/there');
    expect(readAskLink(link.search)).toEqual({question, scope});
  });

  it('leads to the page that is open if the question names none on this site', () => {
    const link = makeAskLink({question: 'Why?', pageUrl: 'https://evil.example/'}, PAGE);
    expect(link).toMatch(/^https:\/\/book\.example\/docs\/here\?ask=/);
  });

  it.each(['', '?a=b', '?ask=', '?ask=%20'])('is not in %s', (search) => {
    expect(readAskLink(search)).toBeNull();
  });

  it('is removed from an address, and the rest stays', () => {
    expect(dropAskLink('?a=b&ask=Why%3F&in=page')).toBe('?a=b');
    expect(dropAskLink('?ask=Why%3F')).toBe('');
  });
});
