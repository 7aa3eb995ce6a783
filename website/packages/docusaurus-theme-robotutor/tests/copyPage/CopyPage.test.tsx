// @vitest-environment jsdom
import {act} from 'react';
import {createRoot, type Root} from 'react-dom/client';
import {renderToString} from 'react-dom/server';
import {afterEach, beforeEach, expect, it, vi} from 'vitest';
import {CopyPage} from '../../src/copyPage/CopyPage';

let container: HTMLElement;
let root: Root;

const button = (): HTMLButtonElement => container.querySelector('button')!;
const status = (): HTMLElement => container.querySelector('[role=status]')!;
const press = async (): Promise<void> => {
  await act(async () => button().click());
};

beforeEach(async () => {
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
  window.history.pushState(null, '', '/docs/arms/');
  container = document.body.appendChild(document.createElement('div'));
  root = createRoot(container);
  await act(async () => root.render(<CopyPage />));
});

afterEach(async () => {
  await act(async () => root.unmount());
  container.remove();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

const answer = (response: Response): void => {
  vi.stubGlobal('fetch', vi.fn(async () => response));
};
const markdown = (): Response =>
  new Response('# Arms\n', {headers: {'content-type': 'text/markdown'}});

it('names the Markdown file in the head of the page', () => {
  const link = document.querySelector('link[rel=alternate]');
  expect(link?.getAttribute('type')).toBe('text/markdown');
  expect(link?.getAttribute('href')).toBe('/docs/arms.md');
});

it('is part of the page before scripts run', () => {
  expect(renderToString(<CopyPage />)).toContain('Copy page as Markdown');
});

it('copies the page and says so for a moment', async () => {
  vi.useFakeTimers();
  const writeText = vi.fn(async () => undefined);
  vi.stubGlobal('navigator', {clipboard: {writeText}});
  answer(markdown());
  await press();
  expect(writeText).toHaveBeenCalledWith(
    `# Arms\n\n<${window.location.origin}/docs/arms/>\n\n`,
  );
  expect(status().textContent).toBe('Copied');
  await act(async () => vi.advanceTimersByTimeAsync(5000));
  expect(status().textContent).toBe('');
});

it('offers the file if the browser refuses to copy', async () => {
  vi.stubGlobal('navigator', {
    clipboard: {writeText: () => Promise.reject(new Error('refused'))},
  });
  answer(markdown());
  await press();
  expect(status().textContent).toBe(
    'Your browser did not allow copying. Open the Markdown file',
  );
  expect(status().querySelector('a')?.getAttribute('href')).toBe('/docs/arms.md');
});

it('says calmly that the page is not available, and works again afterwards', async () => {
  vi.stubGlobal('navigator', {clipboard: {writeText: async () => undefined}});
  answer(new Response('', {status: 404}));
  await press();
  expect(status().textContent).toBe('This page is not available as Markdown.');
  answer(markdown());
  await press();
  expect(status().textContent).toBe('Copied');
});

const openMenu = (): Promise<void> =>
  act(async () => container.querySelector<HTMLButtonElement>('[aria-expanded]')!.click());
const links = (): HTMLAnchorElement[] => Array.from(container.querySelectorAll('a'));

it('opens the page in other programs, by its Markdown file', async () => {
  await openMenu();
  const file = `${window.location.origin}/docs/arms.md`;
  expect(links()[0]!.href).toBe(file);
  const chats = links().filter(({textContent}) => textContent?.startsWith('Open in'));
  expect(chats.map(({textContent}) => textContent)).toEqual([
    'Open in ChatGPT', 'Open in Claude', 'Open in Cursor',
  ]);
  expect(chats.every(({href}) => decodeURIComponent(href).includes(file))).toBe(true);
});

it('connects editors to the server of the book, and closes on Escape', async () => {
  await openMenu();
  const server = `${window.location.origin}/mcp`;
  const [cursor, code] = links().filter(({textContent}) => textContent?.startsWith('Connect to'));
  const config = new URL(cursor!.href).searchParams.get('config')!;
  expect(JSON.parse(atob(config))).toEqual({url: server});
  expect(decodeURIComponent(code!.href)).toContain(`"url":"${server}"`);
  const writeText = vi.fn(async () => undefined);
  vi.stubGlobal('navigator', {clipboard: {writeText}});
  const command = Array.from(container.querySelectorAll('button')).at(-1)!;
  await act(async () => command.click());
  expect(writeText).toHaveBeenCalledWith(expect.stringMatching(/^claude mcp add --transport http [a-z-]+ http/));
  await act(async () => {
    command.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true}));
  });
  expect(links()).toEqual([]);
});
