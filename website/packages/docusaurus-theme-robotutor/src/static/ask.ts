/** Questions to the service or to the index of the site. */

import {askService} from '../service/askService';
import type {AnswerEvent, AnswerRequest} from '../service/protocol';
import type {ServiceSettings} from '../service/requests';
import {usesIndex} from './findIndex';

/** Asks a question, as `askService` does, but the index of the site if that is in use. */
export async function* ask(
  settings: ServiceSettings,
  request: AnswerRequest,
  signal: AbortSignal,
): AsyncGenerator<AnswerEvent, void, undefined> {
  if (await usesIndex(settings)) {
    const {askIndex} = await import(/* webpackChunkName: "robotutor-index" */ './askIndex');
    yield* askIndex(settings.searchUrl ?? '', request, signal);
  } else {
    yield* askService(settings, request, signal);
  }
}
