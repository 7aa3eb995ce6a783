/** Responses of a service that exists only in a test. */

const encoder = new TextEncoder();

/** Encodes an event as the service does, but leaves characters outside ASCII as they are. */
export const encodeEvent = (name: string, data: unknown): string =>
  `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;

export const START = {
  protocol: 1,
  answer_id: 'a1',
  conversation_id: 'c1',
  mode: 'normal',
  search_question: null,
  index_id: 'i1',
  model: null,
};

export const DONE = {
  answer_id: 'a1',
  kind: 'generated',
  level: 'answered',
  text: '',
  sentences: [],
  passages: [],
  notices: [],
  model: 'm',
  complete: true,
  timings_ms: {total: 1},
};

/** An answer of some pieces, complete with its last event. */
export const encodeAnswer = (...pieces: string[]): string =>
  [
    encodeEvent('start', START),
    ...pieces.map((text) => encodeEvent('delta', {text})),
    encodeEvent('done', {...DONE, text: pieces.join('')}),
  ].join('');

/** Returns a streamed response whose body arrives in the given pieces. */
export function respond(pieces: readonly (Uint8Array | string)[]): Response {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) {
        controller.enqueue(typeof piece === 'string' ? encoder.encode(piece) : piece);
      }
      controller.close();
    },
  });
  return new Response(body, {headers: {'content-type': 'text/event-stream; charset=utf-8'}});
}

/** Returns a problem document of the service. */
export function respondProblem(
  status: number,
  code: string,
  {headers = {}, errors}: {headers?: Record<string, string>; errors?: unknown} = {},
): Response {
  const body = JSON.stringify({type: 'about:blank', status, detail: 'For programs.', code, errors});
  return new Response(body, {
    status,
    headers: {'content-type': 'application/problem+json', ...headers},
  });
}

/** A streamed response that a test writes piece by piece. */
export class LiveResponse {
  readonly response: Response;
  /** True after the reader gave up the stream. */
  isCancelled = false;
  private controller!: ReadableStreamDefaultController<Uint8Array>;

  constructor() {
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.controller = controller;
      },
      cancel: () => {
        this.isCancelled = true;
      },
    });
    this.response = new Response(body, {headers: {'content-type': 'text/event-stream'}});
  }

  /** Sends text. A reader that has left does not notice. */
  send(text: string): void {
    try {
      this.controller.enqueue(encoder.encode(text));
    } catch {
      // the reader has left
    }
  }

  /** Ends the stream. */
  end(): void {
    this.controller.close();
  }

  /** Breaks the connection. */
  break(): void {
    this.controller.error(new TypeError('network error'));
  }
}
