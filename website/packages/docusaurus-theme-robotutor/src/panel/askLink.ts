/** Addresses that open the panel and ask a question: `?ask=QUESTION`, and `&in=page` or `module`. */

import type {ScopeId} from '../compose/ScopeChoice';
import type {Asked} from '../conversation/model';

/** The name of the question in an address. */
const ASK = 'ask';

/** The name of the part of the book in an address; the whole book without it. */
const IN = 'in';

const SCOPES: readonly ScopeId[] = ['page', 'module'];

/** A question that an address asks. */
export interface AskedByLink {
  question: string;
  scope: ScopeId;
}

/** Returns the address that asks a question again, on the page where it was asked. */
export function makeAskLink(
  {question, filters, pageUrl}: Asked,
  {origin, pathname}: Pick<Location, 'origin' | 'pathname'>,
): string {
  const url = new URL(origin + (pageUrl?.startsWith('/') ? pageUrl : pathname));
  const scope = filters?.doc_paths ? 'page' : filters?.modules ? 'module' : null;
  url.search = new URLSearchParams({[ASK]: question, ...(scope ? {[IN]: scope} : {})}).toString();
  return url.href;
}

/** Returns the question that an address asks, or null. */
export function readAskLink(search: string): AskedByLink | null {
  const fields = new URLSearchParams(search);
  const question = fields.get(ASK)?.trim() ?? '';
  const scope = SCOPES.find((name) => name === fields.get(IN)) ?? 'book';
  return question ? {question, scope} : null;
}

/** Returns the query of an address without a question, so that a reload does not ask again. */
export function dropAskLink(search: string): string {
  const fields = new URLSearchParams(search);
  fields.delete(ASK);
  fields.delete(IN);
  return fields.size > 0 ? `?${fields.toString()}` : '';
}
