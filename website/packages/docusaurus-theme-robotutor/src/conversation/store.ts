/** One conversation with the service: its turns, its requests and what is kept of it. */

import {
  CUT_OFF,
  RATE_LIMITED,
  ServiceError,
  TOO_SLOW,
  isServiceDown,
  makeError,
} from '../service/problems';
import type {AnswerEvent} from '../service/protocol';
import {checkReady, rateAnswer, type ServiceSettings} from '../service/requests';
import {ask} from '../static/ask';
import {Countdown} from './countdown';
import type {Asked, Turn} from './model';
import {makeRequest} from './requests';
import {loadConversation, saveConversation} from './storage';
import {applyEvent, beginTurn, endTurn, failTurn, quoteSources, stopTurn} from './turns';

/** The state of a conversation that a panel shows. */
export interface ConversationState {
  /** Oldest first. At most one, the running one, is still arriving. */
  readonly turns: Turn[];
  /** True while an answer is arriving. */
  readonly busy: boolean;
  /** The seconds until the next question may be asked; 0 if it may be asked now. */
  readonly waitS: number;
  /** True if the service could not be reached the last time. */
  readonly serviceDown: boolean;
  /** True after the turns were forgotten, until the next question. */
  readonly canUndo: boolean;
}

/** Milliseconds between two saves while an answer arrives. */
const SAVE_EVERY_MS = 2_000;

/** The state of a conversation without turns. */
export const EMPTY: ConversationState = {
  turns: [],
  busy: false,
  waitS: 0,
  serviceDown: false,
  canUndo: false,
};

/**
 * A conversation with the service.
 *
 * It lives outside of React, so that an answer goes on while the panel is closed or the reader goes
 * to another page.
 */
export class ConversationStore {
  private state: ConversationState = EMPTY;
  private conversationId: string | undefined;
  private running: {turnId: string; controller: AbortController} | null = null;
  private forgotten: {turns: Turn[]; conversationId: string | undefined} | null = null;
  private savedAt = 0;
  private readonly listeners = new Set<() => void>();
  private readonly countdown = new Countdown((waitS) => this.update({waitS}));
  private readonly settings: ServiceSettings;
  private readonly storage: Storage | null;

  /** Continues the stored conversation. `storage` is null if nothing can be stored. */
  constructor(settings: ServiceSettings, storage: Storage | null) {
    this.settings = settings;
    this.storage = storage;
    const {turns, conversationId} = loadConversation(storage);
    this.state = {...EMPTY, turns};
    this.conversationId = conversationId;
    if (typeof window !== 'undefined') {
      window.addEventListener('online', () => void this.checkAgain());
      window.addEventListener('pagehide', () => this.save());
    }
  }

  /** Calls a listener after each change. Returns a function that ends this. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** Returns the state. It is a new object after each change, and only then. */
  readonly read = (): ConversationState => this.state;

  /** Asks a question, unless an answer is arriving or the reader has to wait. */
  readonly ask = (asked: Asked): void => {
    const question = asked.question.trim();
    if (question && this.isFree()) {
      const turn = beginTurn({...asked, question});
      void this.run(turn, this.state.turns, [...this.state.turns, turn]);
    }
  };

  /** Asks a turn's question again. The new answer takes the place of the old one. */
  readonly retry = (turn: Turn): void => {
    const place = this.state.turns.findIndex(({id}) => id === turn.id);
    if (place < 0 || !this.isFree()) {
      return;
    }
    const next = beginTurn(turn.asked);
    const turns = this.state.turns.map((other) => (other.id === turn.id ? next : other));
    void this.run(next, turns.slice(0, place), turns);
  };

  /** Stops the running answer. Its text so far stays. */
  readonly stop = (): void => this.endRunning(stopTurn);

  /** Stops the running answer and shows the passages that were found for it. */
  readonly showPassages = (): void => this.endRunning(quoteSources);

  /** Stops the running answer, forgets all turns and begins a new conversation. */
  readonly clear = (): void => {
    this.stop();
    this.forgotten = {turns: this.state.turns, conversationId: this.conversationId};
    this.conversationId = undefined;
    this.update({turns: [], canUndo: this.forgotten.turns.length > 0});
    this.save();
  };

  /** Brings back the turns that were forgotten last, if no question was asked since then. */
  readonly undo = (): void => {
    if (this.forgotten && this.state.canUndo) {
      this.conversationId = this.forgotten.conversationId;
      this.update({turns: this.forgotten.turns, canUndo: false});
      this.forgotten = null;
      this.save();
    }
  };

  /** Sends a rating. Returns false if it could not be stored. */
  readonly rate = async (turn: Turn, rating: 'up' | 'down', note?: string): Promise<boolean> => {
    if (!turn.answerId) {
      return false;
    }
    try {
      await rateAnswer(this.settings, {answerId: turn.answerId, thumb: rating, note});
    } catch {
      return false;
    }
    this.change(turn.id, (rated) => ({...rated, rating}));
    this.save();
    return true;
  };

  private endRunning(edit: (turn: Turn) => Turn): void {
    const {running} = this;
    if (running) {
      this.running = null;
      running.controller.abort();
      this.change(running.turnId, edit, {busy: false});
      this.save();
    }
  }

  private isFree(): boolean {
    return !this.running && this.state.waitS === 0;
  }

  private async run(turn: Turn, earlier: readonly Turn[], turns: Turn[]): Promise<void> {
    const running = {turnId: turn.id, controller: new AbortController()};
    const isCurrent = (): boolean => this.running === running;
    this.running = running;
    this.forgotten = null;
    this.update({turns, busy: true, canUndo: false});
    this.save();
    const request = makeRequest(turn.asked, earlier, this.conversationId);
    let problem: ServiceError | null = null;
    try {
      for await (const event of ask(this.settings, request, running.controller.signal)) {
        if (!isCurrent()) {
          return;
        }
        this.take(turn.id, event);
      }
    } catch (error) {
      problem = error instanceof ServiceError ? error : makeError('UNKNOWN', 'failed');
    }
    if (isCurrent()) {
      this.running = null;
      this.finish(turn.id, problem);
    }
  }

  private take(turnId: string, event: AnswerEvent): void {
    if (event.event === 'start' && event.data.conversation_id) {
      this.conversationId = event.data.conversation_id;
    }
    this.change(turnId, (turn) => applyEvent(turn, event), {serviceDown: false});
    if (Date.now() - this.savedAt >= SAVE_EVERY_MS) {
      this.save();
    }
  }

  private finish(turnId: string, error: ServiceError | null): void {
    const problem = error?.problem;
    if (problem?.code === RATE_LIMITED) {
      this.countdown.start(problem.retryAfterS ?? 0);
    }
    const isCut = !problem || problem.code === CUT_OFF;
    // Any other problem than silence means that the service was reached.
    const isUnknown = problem?.code === TOO_SLOW && this.state.serviceDown;
    const serviceDown = isServiceDown(error) || isUnknown;
    this.change(turnId, isCut ? endTurn : (turn) => failTurn(turn, problem), {
      busy: false,
      serviceDown,
    });
    this.save();
  }

  private async checkAgain(): Promise<void> {
    if (this.state.serviceDown && (await checkReady(this.settings))) {
      this.update({serviceDown: false});
    }
  }

  private change(
    turnId: string,
    edit: (turn: Turn) => Turn,
    more: Partial<ConversationState> = {},
  ): void {
    const turns = this.state.turns.map((turn) => (turn.id === turnId ? edit(turn) : turn));
    this.update({...more, turns});
  }

  private update(changed: Partial<ConversationState>): void {
    this.state = {...this.state, ...changed};
    for (const listener of this.listeners) {
      listener();
    }
  }

  private save(): void {
    this.savedAt = Date.now();
    saveConversation(this.storage, {
      turns: this.state.turns,
      ...(this.conversationId ? {conversationId: this.conversationId} : {}),
    });
  }
}
