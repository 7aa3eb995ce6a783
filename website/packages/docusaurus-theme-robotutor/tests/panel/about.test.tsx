// @vitest-environment jsdom
import {act} from 'react';
import {afterEach, beforeEach, expect, it, vi} from 'vitest';
import {nameSource, setAbout} from '../../src/about';
import {sayHeading} from '../../src/conversation/outcome';
import {beginTurn} from '../../src/conversation/turns';
import {words} from '../../src/panel/words';
import {useSettings} from '../../src/settings';
import {globalData} from '../docusaurus/globalData';
import {render} from '../render';

const SETTINGS = {serviceUrl: ''};
const DOCS = {name: 'Ada', source: 'documentation', language: 'en'};
const THEME = 'docusaurus-theme-robotutor';
const Name = () => useSettings().name;

let asked: string[] = [];

/** Opens the panel of a page that was loaded anew, with a service that replies so. */
async function open(reply: () => Response): Promise<void> {
  vi.resetModules();
  vi.doMock('../../src/about', () => ({setAbout}));
  vi.stubGlobal('fetch', async (address: string) => {
    asked.push(address);
    return reply();
  });
  const {askAbout} = await import('../../src/panel/askAbout');
  await act(async () => askAbout(SETTINGS));
  await act(async () => askAbout(SETTINGS));
}

beforeEach(() => {
  asked = [];
  sessionStorage.clear();
});

afterEach(() => {
  act(() => setAbout(null));
  vi.doUnmock('../../src/about');
  vi.unstubAllGlobals();
});

it('the service names the assistant and its source', async () => {
  const {element} = render(<Name />);
  expect(element.textContent).toBe('RoboTutor');
  await open(() => Response.json(DOCS));
  expect(element.textContent).toBe('Ada');
  expect(words.wholeBook()).toBe('Whole documentation');
  expect(sayHeading(beginTurn({question: ''}))).toBe('The documentation says');
  expect(words.intro('Ada')).toBe('Ada answers from this documentation and shows you where it says so.');
});

it('a session asks once', async () => {
  await open(() => Response.json(DOCS));
  act(() => setAbout(null));
  await open(() => Response.json(DOCS));
  expect(asked).toEqual(['/v1/about']);
  expect(words.search()).toBe('Search the documentation');
});

it.each([
  ['fails', () => new Response('', {status: 404})],
  ['is another server', () => new Response('<html>')],
  ['tells no source', () => Response.json({name: 'Ada', source: 7})],
])('the words stay the same if the service %s', async (_, reply) => {
  await open(reply);
  expect(words.search()).toBe('Search the book');
  expect(asked).toEqual(['/v1/about']);
});

it('a name that the site gives stays', () => {
  const before = globalData[THEME];
  globalData[THEME] = {...(before as object), name: 'Grace'};
  setAbout(DOCS);
  expect(render(<Name />).element.textContent).toBe('Grace');
  globalData[THEME] = before;
});

it('texts in another language, titles and names stay as they are', () => {
  setAbout(DOCS);
  expect(words.bookSuggestion('The book of $1')).toBe(
    'What does the documentation say about “The book of $1”?',
  );
  expect(nameSource('Das Buch sagt')).toBe('Das Buch sagt');
  setAbout({...DOCS, source: 'Handbuch', language: 'de'});
  expect(words.search()).toBe('Search the book');
});
