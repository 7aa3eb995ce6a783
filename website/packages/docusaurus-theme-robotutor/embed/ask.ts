import {askService} from '../src/service/askService';
import {isOnBook} from './site';

/** Asks the service, because a script tag always names one. It knows only the pages of the book. */
export const ask: typeof askService = (settings, request, signal) => {
  const {source_url: _page, ...withoutPage} = request;
  return askService(settings, isOnBook() ? request : withoutPage, signal);
};
