import {describe, expect, it} from 'vitest';
import type {Turn} from '../../src/conversation/model';
import {describeOutcome} from '../../src/panel/announcement';
import {takeOffer} from '../../src/panel/offers';

const makeTurn = (fields: Partial<Turn>): Turn => ({
  id: '1', asked: {question: 'Q'}, status: 'done', text: 'Text.',
  sources: [], sentences: [], passages: [], notices: [], ...fields,
});

describe('describeOutcome', () => {
  it('says nothing while an answer arrives, and after the reader stopped it', () => {
    for (const status of ['searching', 'streaming', 'stopped'] as const) {
      expect(describeOutcome(makeTurn({status}), 'Ada')).toBe('');
    }
  });

  it('tells answers, passages that only come close, and refusals apart', () => {
    const refusal = {reason: 'x', message: 'Not in your selection.', related: [], offers: []};
    const said = [
      makeTurn({level: 'answered'}),
      makeTurn({level: 'closest_passages'}),
      makeTurn({status: 'refused'}),
      makeTurn({status: 'refused', refusal}),
      makeTurn({status: 'cut_off'}),
      makeTurn({status: 'failed', problem: {code: 'X', words: 'down'}}),
      makeTurn({kind: 'reply', text: 'Hello.'}),
    ].map((turn) => describeOutcome(turn, 'Ada'));
    expect(new Set(said).size).toBe(said.length);
    expect(said).toContain('Not in your selection.');
    expect(said).toContain('Ada is not available right now. The book works as usual.');
    expect(said).toContain('Hello.');
  });
});

describe('the words of an answer', () => {
  it('are said without Markdown and numbers of sources', () => {
    const text = '## Balance\n\nThe **ZMP** is on the ground [1, 2]. See [this](/a) [3].';
    expect(describeOutcome(makeTurn({text}), 'Ada')).toBe('Balance The ZMP is on the ground. See this.');
  });

  it('are limited', () => {
    expect(describeOutcome(makeTurn({text: 'word '.repeat(1000)}), 'Ada').length).toBeLessThan(1010);
  });
});

describe('takeOffer', () => {
  const selection = {text: 'T', words: 1, url: '/a', section: ''};
  const filters = {doc_paths: ['a.md']};

  it('asks the same again, even if it seems unrelated', () => {
    expect(takeOffer({question: 'Q', selection}, 'answer_anyway')).toEqual({
      question: 'Q', selection, evenIfUnrelated: true,
    });
  });

  it('asks the whole book, without selection and filters', () => {
    expect(takeOffer({question: 'Q', selection, filters}, 'whole_book')).toEqual({
      question: 'Q', pageUrl: '/a',
    });
  });

  it('keeps the page, whose version and language are searched', () => {
    const asked = {question: 'Q', filters, pageUrl: '/b'};
    expect(takeOffer(asked, 'drop_filters')).toEqual({question: 'Q', pageUrl: '/b'});
  });

  it('drops only the filters', () => {
    expect(takeOffer({question: 'Q', filters}, 'drop_filters')).toEqual({question: 'Q'});
    expect(takeOffer({question: 'Q', selection, filters}, 'drop_filters')).toEqual({
      question: 'Q', selection,
    });
  });
});
