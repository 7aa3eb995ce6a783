import {describe, expect, it} from 'vitest';
import type {Asked, Selection, Turn} from '../../src/conversation/model';
import {MAX_HISTORY_BYTES, makeRequest} from '../../src/conversation/requests';
import {beginTurn} from '../../src/conversation/turns';

const SELECTION: Selection = {text: 'A robot moves.', words: 3, url: '/docs/a#b', section: 'B'};

const answered = (asked: Asked, text = 'Yes.', more: Partial<Turn> = {}): Turn => ({
  ...beginTurn(asked),
  status: 'done',
  answerId: 'a1',
  text,
  ...more,
});

describe('a question about the book', () => {
  it('names its filters and the conversation', () => {
    const filters = {doc_paths: ['a.md']};
    const asked = {question: 'Why?', filters, evenIfUnrelated: true, exactWords: true};
    expect(makeRequest(asked, [], 'c1')).toEqual({
      question: 'Why?',
      mode: 'normal',
      filters,
      conversation_id: 'c1',
      even_if_unrelated: true,
      exact_words: true,
      history: [],
    });
  });

  it('names the page on which it was asked, whose version and language are searched', () => {
    const asked = {question: 'Why?', pageUrl: '/docs/2.0/a'};
    expect(makeRequest(asked, [])).toHaveProperty('source_url', '/docs/2.0/a');
  });

  it('has no conversation id that the service would refuse', () => {
    expect(makeRequest({question: 'Why?'}, [], 'c 1')).not.toHaveProperty('conversation_id');
  });

  it('repeats answered turns, and only the question of a turn about a selection', () => {
    const earlier = [
      answered({question: 'One?'}),
      answered({question: 'Two?', selection: SELECTION}),
      answered({question: 'Three?'}, '', {status: 'refused', refusal: {
        reason: 'r', message: 'Not here.', related: [], offers: [],
      }}),
      {...beginTurn({question: 'Failed?'}), status: 'failed' as const},
    ];
    expect(makeRequest({question: 'Why?'}, earlier).history).toEqual([
      {question: 'One?', answer: 'Yes.'},
      {question: 'Two?', answer: ''},
      {question: 'Three?', answer: 'Not here.'},
    ]);
  });

  it('repeats a part of an answer that was stopped', () => {
    const earlier = [answered({question: 'One?'}, 'A rob', {status: 'stopped'})];
    expect(makeRequest({question: 'Why?'}, earlier).history).toHaveLength(1);
  });

  it('repeats at most the latest 20 turns', () => {
    const earlier = Array.from({length: 30}, (_, at) => answered({question: `${at}?`}));
    const history = makeRequest({question: 'Why?'}, earlier).history ?? [];
    expect(history.map(({question}) => question)).toEqual(
      Array.from({length: 20}, (_, at) => `${at + 10}?`),
    );
  });

  it('stays below the size that the service reads', () => {
    const earlier = Array.from({length: 20}, () => answered({question: '?'}, '机'.repeat(50_000)));
    const request = makeRequest({question: '机'.repeat(2_000)}, earlier);
    expect(request.history!.length).toBeGreaterThan(1);
    expect(new TextEncoder().encode(JSON.stringify(request.history)).length).toBeLessThan(
      MAX_HISTORY_BYTES,
    );
  });

  it('cuts no character of an earlier answer into halves', () => {
    const earlier = [answered({question: '?'}, `a${'🤖'.repeat(5_000)}`)];
    const [turn] = makeRequest({question: '?'}, earlier).history!;
    expect(turn!.answer).toHaveLength(7_999);
    expect(turn!.answer.endsWith('🤖')).toBe(true);
  });
});

describe('a question about a selection', () => {
  it('names the selection, its place and no filters', () => {
    const asked = {question: 'Why?', selection: SELECTION, filters: {modules: ['m']}};
    expect(makeRequest(asked, [])).toEqual({
      question: 'Why?',
      mode: 'selected_text_only',
      selected_text: 'A robot moves.',
      source_url: '/docs/a#b',
      source_section: 'B',
      history: [],
    });
  });

  it('leaves out a place that it does not know', () => {
    const asked = {question: 'Why?', selection: {...SELECTION, url: '', section: ''}};
    const request = makeRequest(asked, []);
    expect(request).not.toHaveProperty('source_url');
    expect(request).not.toHaveProperty('source_section');
  });

  it('repeats only turns about the same selection', () => {
    const same = {...SELECTION, text: ' A robot\n moves. ', url: '/elsewhere'};
    const other = {...SELECTION, text: 'Another text.'};
    const earlier = [
      answered({question: 'Book?'}, 'A whole-book answer.'),
      answered({question: 'Same?', selection: same}),
      answered({question: 'Other?', selection: other}),
    ];
    expect(makeRequest({question: 'Why?', selection: SELECTION}, earlier).history).toEqual([
      {question: 'Same?', answer: 'Yes.', selected_text: same.text},
    ]);
  });

  it('stays below the size that the service reads', () => {
    const selection = {...SELECTION, text: '\u0001'.repeat(20_000)};
    const earlier = Array.from({length: 20}, () => answered({question: '?', selection}));
    const request = makeRequest({question: '?', selection}, earlier);
    const bytes = new TextEncoder().encode(JSON.stringify(request)).length;
    expect(bytes).toBeLessThan(256 * 1024);
  });
});
