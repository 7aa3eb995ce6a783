/** Requests to the service, except for streamed answers. */

import {usesIndex} from '../static/findIndex';
import {readCitation} from './events';
import {isRecord, readList, readNumber, readObject, readText} from './fields';
import {SERVICE_DOWN, makeError, readProblem} from './problems';
import type {Citation} from './protocol';

/** Where the service is. */
export interface ServiceSettings {
  /** The address without a slash at the end; empty for the origin of the page. */
  serviceUrl: string;
  /** The key that the service expects, if it expects one. */
  apiKey?: string;
  /** The folder of the index that is searched in the browser if no service is named. */
  searchUrl?: string;
}

/** A section of a page. `level` is 2 to 6. */
export interface Heading {
  heading: string;
  url: string;
  level: number;
}

/** A page of the book with its sections in reading order. */
export interface Page {
  title: string;
  url: string;
  doc_path: string;
  module: string;
  chapter: string;
  sections: Heading[];
}

/** Milliseconds that a short request may take. */
const TIMEOUT_MS = 20_000;

/**
 * Sends a request and returns its response if the status is not an error.
 *
 * Throws a `ServiceError` if the status is an error or if the service cannot be reached. Throws
 * the signal's own reason if the signal aborts.
 */
export async function send(
  {serviceUrl, apiKey}: ServiceSettings,
  path: string,
  {body, accept, signal}: {body?: unknown; accept: string; signal: AbortSignal},
): Promise<Response> {
  const headers: Record<string, string> = {Accept: accept};
  if (body !== undefined) {
    headers['Content-Type'] = 'application/json';
  }
  if (apiKey) {
    headers.Authorization = `Bearer ${apiKey}`;
  }
  let response: Response;
  try {
    response = await fetch(serviceUrl + path, {
      method: body === undefined ? 'GET' : 'POST',
      headers,
      signal,
      ...(body === undefined ? {} : {body: JSON.stringify(body)}),
    });
  } catch {
    signal.throwIfAborted();
    throw makeError(SERVICE_DOWN, 'down'); // fetch gives no reason
  }
  if (!response.ok) {
    throw await readProblem(response);
  }
  return response;
}

/**
 * Sends a request whose answer is short. It fails like one to a service that is down if questions
 * go to the index of the site, because then there is no service.
 */
async function sendShort(
  settings: ServiceSettings,
  path: string,
  body?: unknown,
): Promise<Response> {
  if (await usesIndex(settings)) {
    throw makeError(SERVICE_DOWN, 'down');
  }
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  return send(settings, path, {body, accept: 'application/json', signal});
}

/** Stores a rating of an answer and an optional note; a later rating replaces it. */
export async function rateAnswer(
  settings: ServiceSettings,
  rating: {answerId: string; thumb: 'up' | 'down'; note?: string},
): Promise<void> {
  const note = rating.note?.trim();
  const body = {answer_id: rating.answerId, thumb: rating.thumb, ...(note ? {note} : {})};
  const response = await sendShort(settings, '/v1/feedback', body);
  if (response.status !== 204) {
    throw makeError(SERVICE_DOWN, 'down'); // some other server answered
  }
}

/**
 * Returns pages of the book in reading order.
 *
 * @param wanted The page at a path of the site, which is none if the book has no such page, or the
 *   pages of a module. A service of an earlier version returns all pages for a path. Without a
 *   service there are no pages.
 */
export async function fetchContents(
  settings: ServiceSettings,
  wanted: {url: string} | {module: string},
): Promise<Page[]> {
  if (await usesIndex(settings)) {
    return [];
  }
  const path = `/v1/contents?${new URLSearchParams(wanted).toString()}`;
  const response = await sendShort(settings, path);
  const body: unknown = await response.json().catch(() => null);
  if (!isRecord(body)) {
    throw makeError(SERVICE_DOWN, 'down'); // some other server answered
  }
  return readList(body.pages, readPage);
}

/** Returns what the service says about its names. */
export async function fetchAbout(settings: ServiceSettings): Promise<unknown> {
  const response = await sendShort(settings, '/v1/about');
  return response.json();
}

/** A section of the book with its text as Markdown. */
export interface SectionText extends Citation {
  text: string;
}

/** Returns the section at an address; null if the book has none there. */
export async function fetchSection(
  settings: ServiceSettings,
  url: string,
): Promise<SectionText | null> {
  const path = `/v1/sections?${new URLSearchParams({url}).toString()}`;
  const response = await sendShort(settings, path);
  return readSection(await response.json().catch(() => null));
}

/** Returns the entries of the book's glossaries for the terms and symbols in a text. */
export async function fetchEntries(
  settings: ServiceSettings,
  text: string,
): Promise<SectionText[]> {
  const response = await sendShort(settings, '/v1/glossary', {text});
  const body: unknown = await response.json().catch(() => null);
  return isRecord(body) ? readList(body.entries, readSection) : [];
}

/** Returns true if the service can answer questions now. It never throws. */
export async function checkReady(settings: ServiceSettings): Promise<boolean> {
  if (await usesIndex(settings)) {
    return true;
  }
  try {
    const response = await sendShort(settings, '/readyz');
    // A static site may answer every address with a page.
    return response.headers.get('content-type')?.includes('json') ?? false;
  } catch {
    return false;
  }
}

const readSection = (value: unknown): SectionText | null =>
  readObject(value, (fields) => {
    const text = readText(fields.text);
    return text ? {...readCitation(fields), text} : null;
  });

const readPage = (value: unknown): Page | null =>
  readObject(value, (fields) => ({
    title: readText(fields.title),
    url: readText(fields.url),
    doc_path: readText(fields.doc_path),
    module: readText(fields.module),
    chapter: readText(fields.chapter),
    sections: readList(fields.sections, readHeading),
  }));

const readHeading = (value: unknown): Heading | null =>
  readObject(value, (fields) => ({
    heading: readText(fields.heading),
    url: readText(fields.url),
    level: readNumber(fields.level) ?? 2,
  }));
