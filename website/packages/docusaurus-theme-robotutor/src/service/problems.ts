/** Problems of a request. */

import type {Problem} from '../conversation/model';
import {isRecord} from './fields';
import type {Failure} from './protocol';
import type {ProblemWords} from './words';

// Codes of problems that this package finds itself. Other codes come from the service.

/** Nobody answered, or another server did. */
export const SERVICE_DOWN = 'SERVICE_DOWN';

/** The stream of an answer ended without its last event. */
export const CUT_OFF = 'CUT_OFF';

/** The service did not begin to answer in time. */
export const TOO_SLOW = 'TOO_SLOW';

/** The service speaks a version of the protocol that this package does not know. */
export const VERSIONS_DIFFER = 'VERSIONS_DIFFER';

/** The code of the service for too many questions. */
export const RATE_LIMITED = 'RATE_LIMITED';

/** Seconds to wait after too many questions if the service names no time. */
const DEFAULT_WAIT_S = 10;

/** A request that failed. */
export class ServiceError extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.code);
    this.name = 'ServiceError';
    this.problem = problem;
  }
}

/** Returns an error with the words of a problem. */
export function makeError(code: string, words: ProblemWords, retryAfterS?: number): ServiceError {
  return new ServiceError({code, words, ...(retryAfterS === undefined ? {} : {retryAfterS})});
}

/** Returns true if the service could not be reached. */
export const isServiceDown = (error: unknown): boolean =>
  error instanceof ServiceError && error.problem.code === SERVICE_DOWN;

/**
 * Returns the error for a response with an error status.
 *
 * A response that is not a problem document does not come from the service, but from a proxy or a
 * plain web server in its place. Then the service counts as down.
 */
export async function readProblem(response: Response): Promise<ServiceError> {
  const body = await readDocument(response);
  const waitS = readRetryAfter(response.headers.get('retry-after'));
  if (response.status === 429) {
    return makeError(RATE_LIMITED, 'tooMany', waitS ?? DEFAULT_WAIT_S);
  }
  if (response.status === 413) {
    return makeError('BODY_TOO_LARGE', 'tooLong');
  }
  if (response.status === 401 || response.status === 403) {
    return makeError(body?.code ?? 'NOT_ALLOWED', 'notAllowed');
  }
  if (!body) {
    return makeError(SERVICE_DOWN, 'down', waitS);
  }
  return makeError(body.code, chooseWords(response.status, body), waitS);
}

/** Returns the problem of an `error` event. */
export function describeFailure(failure: Failure): Problem {
  const words = /TIMEOUT/.test(failure.code) ? 'tooSlow' : 'failed';
  const {problem} = makeError(failure.code, words);
  const retryAfterS = failure.retry_after_s;
  return retryAfterS === null ? problem : {...problem, retryAfterS: Math.ceil(retryAfterS)};
}

/** Returns the seconds of a `Retry-After` header, which is a number of seconds or a date. */
export function readRetryAfter(header: string | null, now = Date.now()): number | undefined {
  const text = header?.trim() ?? '';
  if (/^\d{1,9}$/.test(text)) {
    return Number(text);
  }
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - now) / 1000));
}

interface ProblemDocument {
  code: string;
  fields: string[];
}

async function readDocument(response: Response): Promise<ProblemDocument | null> {
  if (!response.headers.get('content-type')?.includes('application/problem+json')) {
    return null;
  }
  try {
    const body: unknown = await response.json();
    if (!isRecord(body)) {
      return null;
    }
    const errors: unknown[] = Array.isArray(body.errors) ? body.errors : [];
    const fields = errors.map((entry) => (isRecord(entry) ? String(entry.field) : ''));
    return {code: typeof body.code === 'string' ? body.code : 'UNKNOWN', fields};
  } catch {
    return null; // the body is not JSON, or the connection was lost
  }
}

function chooseWords(status: number, {code, fields}: ProblemDocument): ProblemWords {
  if (code === 'QUERY_TOO_LONG') {
    return 'tooLong';
  }
  if (code === 'SELECTED_TEXT_MISSING') {
    return 'selectionUnreadable';
  }
  if (status === 400 || status === 422) {
    if (fields.includes('selected_text')) {
      return 'selectionTooLong';
    }
    return fields.includes('question') ? 'questionTooLong' : 'unreadable';
  }
  if (status === 421) {
    return 'notAllowed';
  }
  if (status === 503) {
    return 'down';
  }
  return status === 504 ? 'tooSlow' : 'failed';
}
