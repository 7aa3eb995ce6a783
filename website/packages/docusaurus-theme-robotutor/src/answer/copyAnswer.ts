/** An answer on the clipboard, as Markdown that is complete without the site. */

import type {Turn} from '../conversation/model';
import type {Citation} from '../service/protocol';
import {splitCode} from './dollars';
import {readCitations} from './citationMarks';
import {readAddress} from './links';
import {namePlace} from './PlaceLink';
import {isQuoted} from './sortSources';

/**
 * Puts an answer on the clipboard.
 *
 * @param origin - The origin of the site, such as `https://example.org`.
 * @returns False if the browser did not allow it.
 */
export async function copyAnswer(turn: Turn, origin: string): Promise<boolean> {
  const text = writeMarkdown(turn, origin);
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text);
  }
}

/** Returns the question, the answer and its sources as Markdown with full addresses. */
export function writeMarkdown(turn: Turn, origin: string): string {
  const question = turn.asked.question.trim().replace(/\s*\n\s*/g, ' ');
  const body = isQuoted(turn) ? writeQuotations(turn, origin) : writeText(turn, origin);
  return [`**${question}**`, ...body].filter(Boolean).join('\n\n') + '\n';
}

function writeQuotations(turn: Turn, origin: string): string[] {
  return turn.passages.flatMap(({citation, text}) => [
    text
      .split('\n')
      .map((line) => `> ${line}`.trimEnd())
      .join('\n'),
    `— ${writePlace(citation, origin)}`,
  ]);
}

function writeText(turn: Turn, origin: string): string[] {
  const refused = turn.refusal ? turn.refusal.message : turn.text.trim();
  const cited = new Set(turn.refusal ? [] : readCitations(turn.text));
  const list = turn.sources
    .filter(({number}) => cited.has(number))
    .map((source) => `${source.number}. ${writePlace(source, origin)}`);
  return [withFullLinks(refused, origin), list.join('\n')];
}

function writePlace(place: Citation, origin: string): string {
  const name = namePlace(place).replace(/[[\]\\]/g, '\\$&');
  const address = place.url ? readAddress(place.url, origin) : null;
  return address?.internal ? `[${name}](${origin}${escapeUrl(address.href)})` : name;
}

/** Writes links to paths of the site with the origin, except in code. */
function withFullLinks(markdown: string, origin: string): string {
  return splitCode(markdown)
    .map(({code, part}) =>
      code ? part : part.replace(/\]\((\/(?!\/)[^()\s]*)\)/g, `](${origin.replace(/\$/g, '')}$1)`),
    )
    .join('');
}

function escapeUrl(url: string): string {
  return url.replace(/\(/g, '%28').replace(/\)/g, '%29');
}

/** Copies by the older way, which works without the permission that the first way needs. */
function copySelected(text: string): boolean {
  const focused = document.activeElement;
  const area = document.createElement('textarea');
  area.value = text;
  area.readOnly = true;
  area.style.cssText = 'position:fixed;inset-block-start:0;opacity:0';
  // Inside the focused part, so that a focus trap does not take the focus back.
  (focused?.parentElement ?? document.body).append(area);
  try {
    area.select();
    return document.execCommand('copy');
  } catch {
    return false;
  } finally {
    area.remove();
    if (focused instanceof HTMLElement) {
      focused.focus({preventScroll: true});
    }
  }
}
