import {describe, expect, it} from 'vitest';
import {fillContact} from '../../src/answer/contact';

const FIELDS = {question: 'Why "fall" & <b>?\r\nBcc: all', page: 'https://book.example/a?b=c#d'};

describe('the link to a person', () => {
  it.each([
    'https://github.com/o/r/issues/new?title={question}&body={page}',
    'mailto:help@example.org?subject={question}&body={page}',
  ])('%s gets the question and the page, escaped', (template) => {
    const address = fillContact(template, FIELDS)!;
    expect(address.startsWith(template.split('?')[0]!)).toBe(true);
    const values = [...new URLSearchParams(address.slice(address.indexOf('?'))).values()];
    expect(values).toEqual(['Why "fall" & <b>? Bcc: all', FIELDS.page]);
    expect(address).not.toMatch(/[<>\r\n"]/);
  });

  it.each([
    'javascript:alert({question})',
    'JavaScript:alert(1)//{question}',
    'data:text/html,{question}',
    'https://{question}.example.org/',
    'https://example.org/{page}',
    'mailto:{question}',
    '/relative?{question}',
    '',
  ])('%s is not safe', (template) => {
    expect(fillContact(template, FIELDS)).toBeNull();
  });

  it('keeps a long question short, without half characters', () => {
    const question = '\u{1F916}'.repeat(5000) + '\ud800';
    const address = fillContact('https://example.org/?q={question}', {question, page: ''})!;
    expect(address.length).toBeLessThan(10_000);
    expect(new URL(address).searchParams.get('q')).not.toContain('\ufffd');
  });
});
