// @vitest-environment jsdom
import fc from 'fast-check';
import {beforeEach, describe, expect, it} from 'vitest';
import type {Turn} from '../../src/conversation/model';
import {
  MAX_STORED_CHARS,
  STORAGE_VERSION,
  loadConversation,
  saveConversation,
} from '../../src/conversation/storage';
import {CONVERSATION_KEY} from '../../src/storage';
import {beginTurn} from '../../src/conversation/turns';

const FULL: Turn = {
  id: 't1',
  asked: {
    question: 'Why?',
    selection: {text: 'A robot', words: 2, url: '/a#b', section: 'B'},
    filters: {modules: ['m']},
    evenIfUnrelated: true,
    exactWords: true,
  },
  status: 'done',
  answerId: 'a1',
  searchQuestion: 'Why a robot?',
  kind: 'generated',
  level: 'answered',
  text: 'Because $x$ 🤖 [1]',
  sources: [{
    number: 1, chunk_id: 'x', title: 'T', section: 'S', url: '/a', module: 'm', chapter: 'c',
    content_type: 'prose', text: 'Source.',
  }],
  sentences: [{text: 'Because', cited: [1]}],
  passages: [{
    number: 1, text: 'Passage.', doc_path: 'a.md', start_line: 1, end_line: 2, highlights: [[0, 4]],
    citation: {title: 'T', section: 'S', url: '/a', module: 'm', chapter: 'c'},
  }],
  notices: [{code: 'no_model', text: 'Quoted.'}],
  refusal: {reason: 'r', message: 'm', related: [], offers: ['whole_book']},
  problem: {code: 'c', words: 'tooSlow'},
  model: 'm',
  rating: 'up',
};

const storage = window.sessionStorage;
beforeEach(() => storage.clear());

describe('the stored conversation', () => {
  it('comes back as it was', () => {
    saveConversation(storage, {turns: [FULL], conversationId: 'c1'});
    expect(loadConversation(storage)).toEqual({turns: [FULL], conversationId: 'c1'});
  });

  it.each(['searching', 'streaming'] as const)('was cut off while %s', (status) => {
    const turn = {...beginTurn({question: 'Why?'}), status, text: 'Bec'};
    saveConversation(storage, {turns: [turn]});
    expect(loadConversation(storage).turns).toEqual([{...turn, status: 'cut_off'}]);
  });

  it('is removed when it is empty', () => {
    saveConversation(storage, {turns: [FULL]});
    saveConversation(storage, {turns: []});
    expect(storage.length).toBe(0);
  });

  it('drops the oldest turns when it is too large', () => {
    const turns = Array.from({length: 50}, (_, at) => ({
      ...FULL, id: `t${at}`, text: 'x'.repeat(20_000),
    }));
    saveConversation(storage, {turns});
    expect(storage.getItem(CONVERSATION_KEY)!.length).toBeLessThan(MAX_STORED_CHARS + 1_000);
    const ids = loadConversation(storage).turns.map(({id}) => id);
    expect(ids.at(-1)).toBe('t49');
    expect(ids.length).toBeGreaterThan(5);
    expect(ids).toEqual(turns.slice(-ids.length).map(({id}) => id));
  });

  it('stays in memory if storage is blocked or full', () => {
    const full = {
      getItem: () => null,
      removeItem: () => {},
      setItem: () => {
        throw new DOMException('full', 'QuotaExceededError');
      },
    } as unknown as Storage;
    expect(() => saveConversation(full, {turns: [FULL]})).not.toThrow();
    const blocked = new Proxy({} as Storage, {
      get: () => {
        throw new DOMException('blocked', 'SecurityError');
      },
    });
    for (const none of [blocked, null]) {
      expect(() => saveConversation(none, {turns: [FULL]})).not.toThrow();
      expect(loadConversation(none)).toEqual({turns: []});
    }
  });

  it('ignores content of another version', () => {
    const other = {version: STORAGE_VERSION + 1, turns: [FULL]};
    storage.setItem(CONVERSATION_KEY, JSON.stringify(other));
    expect(loadConversation(storage)).toEqual({turns: []});
  });

  it('has no turn twice', () => {
    saveConversation(storage, {turns: [FULL, FULL]});
    expect(loadConversation(storage).turns).toHaveLength(1);
  });

  it('never throws, whatever is stored', () => {
    const field = fc.constantFrom(...Object.keys(FULL), ...Object.keys(FULL.asked));
    const broken = fc.tuple(field, fc.jsonValue()).map(([name, value]) => ({
      ...FULL,
      [name]: value,
      asked: name in FULL.asked ? {...FULL.asked, [name]: value} : FULL.asked,
    }));
    const content = fc.oneof(
      fc.string(),
      fc.json(),
      fc.array(fc.oneof(broken, fc.jsonValue())).map((turns) =>
        JSON.stringify({version: STORAGE_VERSION, turns})),
    );
    fc.assert(
      fc.property(content, (text) => {
        storage.setItem(CONVERSATION_KEY, text);
        for (const turn of loadConversation(storage).turns) {
          expect(typeof turn.id).toBe('string');
          expect(turn.asked.question).not.toBe('');
          expect(['searching', 'streaming']).not.toContain(turn.status);
          expect(Array.isArray(turn.sources)).toBe(true);
        }
      }),
    );
  });
});
