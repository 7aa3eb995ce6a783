/** An answer on the clipboard, as Markdown that is complete without the site. */

import {readAddress} from '../addresses';
import type {Turn} from '../conversation/model';
import type {Citation} from '../service/protocol';
import {writeFullLinks} from '../text/code';
import {readCitations} from './citationMarks';
import {namePlace} from './PlaceLink';
import {isQuoted} from './sortSources';

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
  return [writeFullLinks(refused, origin), list.join('\n')];
}

function writePlace(place: Citation, origin: string): string {
  const name = namePlace(place).replace(/[[\]\\]/g, '\\$&');
  const address = place.url ? readAddress(place.url, origin) : null;
  return address?.internal ? `[${name}](${origin}${escapeUrl(address.href)})` : name;
}

function escapeUrl(url: string): string {
  return url.replace(/\(/g, '%28').replace(/\)/g, '%29');
}
