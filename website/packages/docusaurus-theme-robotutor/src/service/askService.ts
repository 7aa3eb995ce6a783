/** Streamed answers of the service. */

import {createParser} from 'eventsource-parser';
import {readEvent} from './events';
import {CUT_OFF, SERVICE_DOWN, TOO_SLOW, VERSIONS_DIFFER, ServiceError, makeError} from './problems';
import {PROTOCOL, type AnswerEvent, type AnswerRequest} from './protocol';
import {send, type ServiceSettings} from './requests';

/**
 * Milliseconds without a byte after which a stream counts as cut off.
 *
 * The service sends a comment every 15 seconds while it waits, so three are missing by then.
 */
export const STALL_MS = 45_000;

const EVENT_STREAM = 'text/event-stream';

/**
 * Asks a question and yields the events of its answer. The last one is `done` or `error`.
 *
 * Events that this version does not know are left out. Nothing is read after the last event.
 *
 * Throws a `ServiceError` if the request fails (the problem has the code of the service), if the
 * service cannot be reached (`SERVICE_DOWN`), does not begin to answer (`TOO_SLOW`), speaks another
 * protocol (`VERSIONS_DIFFER`), or if the stream ends early or stalls (`CUT_OFF`). If the signal
 * aborts, the events simply end.
 */
export async function* askService(
  settings: ServiceSettings,
  request: AnswerRequest,
  signal: AbortSignal,
): AsyncGenerator<AnswerEvent, void, undefined> {
  const stall = new StallTimer(signal);
  try {
    const response = await sendQuestion(settings, request, stall.signal);
    const type = response.headers.get('content-type') ?? '';
    if (!type.includes(EVENT_STREAM) || !response.body) {
      throw makeError(SERVICE_DOWN, 'down'); // some other server answered
    }
    for await (const event of readEvents(response.body, stall)) {
      if (signal.aborted) {
        return;
      }
      yield event;
      if (event.event === 'done' || event.event === 'error') {
        return;
      }
    }
    throw makeError(CUT_OFF, 'failed');
  } catch (error) {
    if (signal.aborted) {
      return;
    }
    if (stall.signal.aborted && !stall.hasBegun) {
      throw makeError(TOO_SLOW, 'tooSlow');
    }
    throw error;
  } finally {
    stall.end();
  }
}

/**
 * Sends a question, and once more without the page's address if the service refuses it.
 *
 * A service refuses addresses outside of its book, for example if it was set up for another base
 * URL. The address only links a selection and chooses a version, so an answer is possible without.
 */
async function sendQuestion(
  settings: ServiceSettings,
  request: AnswerRequest,
  signal: AbortSignal,
): Promise<Response> {
  const sendBody = (body: AnswerRequest): Promise<Response> =>
    send(settings, '/v1/answers', {body, accept: EVENT_STREAM, signal});
  try {
    return await sendBody(request);
  } catch (error) {
    const {source_url: refused, ...withoutPage} = request;
    const isQuery = error instanceof ServiceError && error.problem.code === 'QUERY_INVALID';
    if (refused === undefined || !isQuery) {
      throw error;
    }
    const response = await sendBody(withoutPage);
    console.warn(
      `RoboTutor: the service does not accept ${refused} as a page of its book. Its settings ` +
        'SITE_BASE_URL and SITE_ROUTE_BASE_PATH must fit the baseUrl and routeBasePath of this site.',
    );
    return response;
  }
}

async function* readEvents(
  body: ReadableStream<Uint8Array>,
  stall: StallTimer,
): AsyncGenerator<AnswerEvent, void, undefined> {
  const arrived: AnswerEvent[] = [];
  const parser = createParser({
    onEvent: ({event, data}) => {
      const known = readEvent(event, data);
      if (known) {
        arrived.push(known);
      }
    },
  });
  const decoder = new TextDecoder();
  const reader = body.getReader();
  try {
    for (;;) {
      const piece = await stall.limit(reader.read()).catch(() => null);
      if (!piece || piece.done) {
        return; // it ended, failed or stalled; the caller decides
      }
      parser.feed(decoder.decode(piece.value, {stream: true}));
      for (const event of arrived.splice(0)) {
        if (event.event === 'start' && event.data.protocol !== PROTOCOL) {
          throw makeError(VERSIONS_DIFFER, 'versions');
        }
        yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => {}); // so that the service stops writing
  }
}

/** Aborts a request for which no byte arrived for a while, or whose caller aborts it. */
class StallTimer {
  /** True after the response has begun. */
  hasBegun = false;

  private readonly controller = new AbortController();
  private readonly caller: AbortSignal;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(caller: AbortSignal) {
    this.caller = caller;
    caller.addEventListener('abort', this.abort);
    if (caller.aborted) {
      this.abort();
    }
    this.restart();
  }

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /** Waits for bytes, and rejects if the signal aborts first. Also works without fetch's help. */
  async limit<T>(reading: Promise<T>): Promise<T> {
    this.hasBegun = true;
    this.restart();
    const {signal} = this;
    return new Promise((resolve, reject) => {
      const fail = (): void => reject(new Error('The stream was aborted.'));
      if (signal.aborted) {
        fail();
      }
      signal.addEventListener('abort', fail, {once: true});
      reading.then(resolve, reject).finally(() => signal.removeEventListener('abort', fail));
    });
  }

  /** Stops the timer. Call it after the last byte. */
  end(): void {
    clearTimeout(this.timer);
    this.caller.removeEventListener('abort', this.abort);
  }

  private readonly abort = (): void => this.controller.abort();

  private restart(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(this.abort, STALL_MS);
  }
}
