/** Questions to the search that runs in a worker of this page, without a service. */

import {makeError, type ServiceError} from '../service/problems';
import type {AnswerEvent, AnswerRequest} from '../service/protocol';
import type {SearchProblem, SearchReply} from './messages';

interface Waiting {
  resolve: (events: AnswerEvent[]) => void;
  reject: (error: ServiceError) => void;
}

const searches = new Map<string, IndexSearch>();

/** Asks the index in a folder, and yields the events of the answer as the service would. */
export async function* askIndex(
  searchUrl: string,
  request: AnswerRequest,
  signal: AbortSignal,
): AsyncGenerator<AnswerEvent, void, undefined> {
  const search = searches.get(searchUrl) ?? new IndexSearch(searchUrl);
  searches.set(searchUrl, search);
  const events = await search.ask(request);
  for (const event of events) {
    if (signal.aborted) {
      return;
    }
    yield event;
  }
}

/** A worker that keeps the index and the model in memory. It starts with the first question. */
class IndexSearch {
  private readonly url: string;
  private readonly waiting = new Map<number, Waiting>();
  private worker: Worker | null = null;
  private count = 0;

  constructor(url: string) {
    this.url = url;
  }

  async ask(request: AnswerRequest): Promise<AnswerEvent[]> {
    const worker = this.worker ?? this.start();
    const id = (this.count += 1);
    return new Promise((resolve, reject) => {
      this.waiting.set(id, {resolve, reject});
      worker.postMessage({id, request});
    });
  }

  private start(): Worker {
    try {
      this.worker = new Worker(`${this.url}worker.js`, {type: 'module'});
    } catch {
      throw describe('blocked');
    }
    this.worker.addEventListener('message', ({data}: MessageEvent<SearchReply>) => {
      const waiting = this.waiting.get(data.id);
      this.waiting.delete(data.id);
      if ('events' in data) {
        waiting?.resolve(data.events);
      } else {
        waiting?.reject(describe(data.problem));
      }
    });
    // The worker could not be loaded, or the page's policy forbids it.
    this.worker.addEventListener('error', () => {
      for (const {reject} of this.waiting.values()) {
        reject(describe('blocked'));
      }
      this.waiting.clear();
      this.worker = null;
    });
    return this.worker;
  }
}

function describe(problem: SearchProblem): ServiceError {
  switch (problem) {
    case 'version':
      return makeError('INDEX_VERSION', 'indexVersion');
    case 'missing':
      return makeError('INDEX_MISSING', 'indexMissing');
    case 'blocked':
      return makeError('SEARCH_BLOCKED', 'searchBlocked');
    case 'failed':
      return makeError('SEARCH_FAILED', 'failed');
  }
}
