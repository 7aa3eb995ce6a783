import fc from 'fast-check';
import {describe, expect, it} from 'vitest';
import type {Turn} from '../../src/conversation/model';
import {applyEvent, beginTurn, endTurn, failTurn, stopTurn} from '../../src/conversation/turns';
import {readEvent} from '../../src/service/events';
import type {AnswerEvent} from '../../src/service/protocol';
import {DONE, START} from '../service/streams';

const begin = (): Turn => beginTurn({question: 'What is a robot?'});

function play(...events: [string, unknown][]): Turn {
  return events.reduce((turn, [name, data]) => {
    const event = readEvent(name, JSON.stringify(data));
    return event ? applyEvent(turn, event) : turn;
  }, begin());
}

const REFUSAL = {reason: 'r', message: 'Not in the book.', related: [], offers: ['whole_book', 7]};

describe('a turn', () => {
  it('grows with its deltas', () => {
    const turn = play(['start', START], ['delta', {text: 'A '}], ['delta', {text: 'robot'}]);
    expect(turn).toMatchObject({status: 'streaming', text: 'A robot', answerId: 'a1'});
  });

  it('takes the complete text once', () => {
    const turn = play(['delta', {text: 'A robot'}], ['done', {...DONE, text: 'A robot.'}]);
    expect(turn).toMatchObject({status: 'done', text: 'A robot.', kind: 'generated', model: 'm'});
  });

  it('keeps the text of the deltas if the last event has none', () => {
    expect(play(['delta', {text: 'A robot'}], ['done', {}]).text).toBe('A robot');
  });

  it('names no model if the book is quoted', () => {
    expect(play(['done', {...DONE, kind: 'extracted', text: 'x'}]).model).toBeUndefined();
  });

  it('loses its text to a refusal, whose details stay', () => {
    const done = {...DONE, kind: 'refused', text: 'Not in the book.', level: 'not_covered'};
    const turn = play(['delta', {text: 'Perhaps'}], ['refusal', REFUSAL], ['done', done]);
    expect(turn).toMatchObject({status: 'refused', text: '', level: 'not_covered'});
    expect(turn.refusal).toEqual({...REFUSAL, offers: ['whole_book']});
  });

  it('is refused also without the event `refusal`', () => {
    const turn = play(['done', {...DONE, kind: 'refused', text: 'No.'}]);
    expect(turn).toMatchObject({status: 'refused', text: '', refusal: {message: 'No.'}});
  });

  it('fails with words for students and keeps its text', () => {
    const failure = {code: 'ANSWER_TIMEOUT', message: 'm', transient: true, retry_after_s: 1.2};
    const turn = play(['delta', {text: 'A '}], ['error', failure]);
    expect(turn).toMatchObject({
      status: 'failed',
      text: 'A ',
      problem: {code: 'ANSWER_TIMEOUT', words: 'tooSlow', retryAfterS: 2},
    });
  });

  it('changes only while it is open', () => {
    const open = play(['delta', {text: 'A '}]);
    const problem = {code: 'c', words: 'failed'} as const;
    expect(stopTurn(open)).toMatchObject({status: 'stopped', text: 'A '});
    expect(endTurn(open)).toMatchObject({status: 'cut_off', text: 'A '});
    expect(failTurn(open, problem)).toMatchObject({status: 'failed', text: 'A ', problem});
    const late: AnswerEvent = {event: 'delta', data: {text: 'late'}};
    for (const closed of [stopTurn(open), endTurn(open), failTurn(open, problem)]) {
      expect(applyEvent(closed, late)).toBe(closed);
      expect(endTurn(stopTurn(failTurn(closed, problem)))).toBe(closed);
    }
  });

  it('has an id of its own', () => {
    expect(begin().id).not.toBe(begin().id);
  });
});

const NAMES = ['start', 'sources', 'delta', 'refusal', 'done', 'error', 'weather', undefined];

/** JSON in which fields that the service knows have values of any type. */
const anyFields = fc.dictionary(
  fc.constantFrom(
    ...['protocol', 'answer_id', 'text', 'sources', 'sentences', 'passages', 'notices', 'cited'],
    ...['kind', 'model', 'offers', 'related', 'message', 'number', 'highlights', 'citation'],
  ),
  fc.jsonValue(),
);
const anyJson = fc.oneof(
  fc.string(),
  fc.jsonValue().map((value) => JSON.stringify(value)),
  anyFields.map((value) => JSON.stringify(value)),
  fc
    .array(anyFields, {maxLength: 3})
    .map((entries) => JSON.stringify({sources: entries, passages: entries, sentences: entries})),
);

describe('any events', () => {
  it('never make it throw, and keep the types', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom(...NAMES), anyJson), {maxLength: 12}),
        (events) => {
          let turn = begin();
          for (const [name, json] of events) {
            const event = readEvent(name, json);
            turn = event ? applyEvent(turn, event) : turn;
          }
          expect(typeof turn.text).toBe('string');
          expect(typeof turn.asked.question).toBe('string');
          for (const source of turn.sources) {
            expect(typeof source.number).toBe('number');
            expect(typeof source.url).toBe('string');
          }
          for (const passage of turn.passages) {
            expect(typeof passage.citation.title).toBe('string');
            for (const [start, end] of passage.highlights) {
              expect(passage.text.slice(start, end)).toHaveLength(end - start);
            }
          }
          expect(turn.status === 'refused').toBe(turn.refusal !== undefined);
        },
      ),
    );
  });

  it('in any order lose and double no text before the last event', () => {
    const events = fc.array(
      fc.oneof(
        fc.string().map((text): [string, unknown] => ['delta', {text}]),
        fc.constant<[string, unknown]>(['start', START]),
        fc.constant<[string, unknown]>(['sources', {sources: []}]),
        fc.constant<[string, unknown]>(['weather', {text: 'Sun'}]),
        fc.jsonValue().map((data): [string, unknown] => ['sources', data]),
      ),
    );
    fc.assert(
      fc.property(events, fc.constantFrom('cut', 'done', 'twice'), (before, end) => {
        const text = before
          .map(([name, data]) => (name === 'delta' ? (data as {text: string}).text : ''))
          .join('');
        const done: [string, unknown] = ['done', {...DONE, text}];
        const last = {cut: [], done: [done], twice: [done, done, ['delta', {text: 'late'}]]}[end];
        expect(play(...before, ...(last as [string, unknown][])).text).toBe(text);
      }),
    );
  });
});
