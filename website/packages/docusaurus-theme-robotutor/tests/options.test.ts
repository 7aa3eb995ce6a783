import {normalizePluginOptions} from '@docusaurus/utils-validation';
import {describe, expect, it} from 'vitest';
import themeRoboTutor from '../src/index';
import {validateOptions, type CheckedOptions, type Options} from '../src/options';

type Context = Parameters<typeof validateOptions>[0];

const check = (options?: unknown): CheckedOptions =>
  validateOptions({
    validate: normalizePluginOptions as unknown as Context['validate'],
    options: options as Options,
  });

describe('the options', () => {
  it('have defaults', () => {
    expect(check()).toMatchObject({
      serviceUrl: '', name: 'RoboTutor', copyPage: false, enabled: true, shortcut: 'mod+i',
    });
  });

  it.each([
    ['https://tutor.example.org/', 'https://tutor.example.org'],
    ['http://localhost:8000', 'http://localhost:8000'],
    ['https://example.org/tutor//', 'https://example.org/tutor'],
    ['/tutor/', '/tutor'],
    ['/', ''],
    ['', ''],
  ])('accept the address %s', (serviceUrl, expected) => {
    expect(check({serviceUrl}).serviceUrl).toBe(expected);
  });

  it.each([
    'javascript:alert(1)', '//example.org', 'tutor.example.org', 'ftp://example.org',
    'https://', 'https://example.org/?a=b', 'https://example.org/#a', 'https://exam ple.org',
  ])('refuse the address %s and say what is right', (serviceUrl) => {
    expect(() => check({serviceUrl})).toThrow(/serviceUrl.*https:\/\/tutor\.example\.org/s);
  });

  it.each([
    [{shortcut: 'mod+k'}, /shortcut.*search/],
    [{shortcut: true}, /shortcut/],
    [{suggestions: ['a', 'b', 'c', 'd', 'e']}, /suggestions.*4/],
    [{suggestions: ['']}, /suggestions/],
    [{name: '  '}, /name/],
    [{apiKey: 'two words'}, /apiKey.*spaces/],
    [{servicUrl: ''}, /servicUrl/],
    [{copyPage: 'yes'}, /copyPage/],
    [{enabled: 'no'}, /enabled/],
    [{contactUrl: 'javascript:alert({question})'}, /contactUrl.*mailto/],
    [{contactUrl: 'https://{question}/'}, /contactUrl/],
  ])('refuse %j', (options, message) => {
    expect(() => check(options)).toThrow(message);
  });

  it('accept a template for questions that the book does not answer', () => {
    const contactUrl = 'mailto:help@example.org?subject={question}&body={page}';
    expect(check({contactUrl}).contactUrl).toBe(contactUrl);
  });

  it('accept no shortcut', () => {
    expect(check({shortcut: false}).shortcut).toBe(false);
  });
});

describe('the theme', () => {
  const context = {baseUrl: '/book/'} as unknown as Parameters<typeof themeRoboTutor>[0];

  it('gives the browser its settings', () => {
    let data: unknown;
    const theme = themeRoboTutor(context, check({greeting: 'Hi.'}));
    const actions = {setGlobalData: (value: unknown) => (data = value)};
    void theme.allContentLoaded?.({allContent: {}, actions} as never);
    expect(data).toEqual({
      serviceUrl: '', name: 'RoboTutor', greeting: 'Hi.', copyPage: false, shortcut: 'mod+i',
      subjects: [],
      searchUrl: '/book/robotutor-search/',
    });
  });

  it('adds nothing to a site that switches it off', () => {
    expect(themeRoboTutor(context, check({enabled: false, manifest: false}))).toEqual({
      name: 'docusaurus-theme-robotutor',
    });
  });
});
