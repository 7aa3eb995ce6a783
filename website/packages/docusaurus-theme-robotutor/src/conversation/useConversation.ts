import {useSyncExternalStore} from 'react';
import type {ServiceSettings} from '../service/requests';
import {openStorage} from '../storage';
import type {Asked, Turn} from './model';
import {ConversationStore, EMPTY, type ConversationState} from './store';

/** The conversation of this tab, and what the reader can do with it. */
export interface Conversation extends ConversationState {
  /** Asks a question. It is ignored while an answer arrives or the reader has to wait. */
  ask(asked: Asked): void;
  /** Stops the running answer. Its text so far stays. */
  stop(): void;
  /** Stops the running answer and shows the passages that were found for it. */
  showPassages(): void;
  /** Asks a turn's question again. The new answer takes the place of the old one. */
  retry(turn: Turn): void;
  /** Forgets all turns and begins a new conversation. */
  clear(): void;
  /** Brings back the turns that were forgotten last, if no question was asked since then. */
  undo(): void;
  /** Sends a rating. Returns false if it could not be stored. */
  rate(turn: Turn, rating: 'up' | 'down', note?: string): Promise<boolean>;
}

const stores = new Map<string, ConversationStore>();

/**
 * Returns the conversation of this tab with a service.
 *
 * All components that use it share one conversation. It goes on while none of them is shown.
 */
export function useConversation(settings: ServiceSettings): Conversation {
  const store = findStore(settings);
  const state = useSyncExternalStore(store.subscribe, store.read, () => EMPTY);
  const {ask, stop, showPassages, retry, clear, undo, rate} = store;
  return {...state, ask, stop, showPassages, retry, clear, undo, rate};
}

function findStore(settings: ServiceSettings): ConversationStore {
  const key = JSON.stringify([settings.serviceUrl, settings.apiKey ?? '']);
  let store = stores.get(key);
  if (!store) {
    store = new ConversationStore(settings, openStorage('session'));
    stores.set(key, store);
  }
  return store;
}
