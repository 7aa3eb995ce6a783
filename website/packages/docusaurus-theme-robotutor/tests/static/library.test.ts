import {readFileSync} from 'node:fs';
import {describe, expect, it} from 'vitest';
import {findReply, splitQuestion} from '../../src/static/questions';
import type {Abbreviation, Rules, SearchIndex} from '../../src/static/searchIndex';
import {stem} from '../../src/static/stem';
import {TermReader, isLatin} from '../../src/static/terms';
import {Tokenizer} from '../../src/static/wordPieces';
import {
  addOtherForms,
  findAbbreviations,
  findFormTerms,
  findFormWords,
  spellOut,
} from '../../src/static/wording';

interface Cases {
  stop_words: string[];
  patterns: Pick<
    Rules,
    | 'sentence'
    | 'asks'
    | 'clause'
    | 'pairs'
    | 'max_parts'
    | 'clause_terms'
    | 'pair_terms'
    | 'max_compound_chars'
    | 'forms'
    | 'small_talk'
    | 'smiley'
    | 'code_signs'
    | 'max_talk_words'
  >;
  texts: {text: string; ids: number[]; spans: [number, number][]; terms: string[]}[];
  talk: {text: string; kind: string}[];
  questions: {question: string; parts: string[]; form_words: [number, number][]; form_terms: string[]}[];
}

// What the library does. A test of the package compares the file with the library.
const {stop_words, patterns, texts, talk, questions} = JSON.parse(
  readFileSync(new URL('library.json', import.meta.url), 'utf8'),
) as Cases;
const VOCABULARY = new URL('../../../../../rag_pipeline/data/minilm/tokenizer.json', import.meta.url);
const {vocab} = (
  JSON.parse(readFileSync(VOCABULARY, 'utf8')) as {model: {vocab: Record<string, number>}}
).model;
const pieces = Object.keys(vocab).sort((one, other) => vocab[one]! - vocab[other]!);

const terms = new TermReader(stop_words);
const tokenizer = new Tokenizer(pieces);

describe('the same as in the library', () => {
  it.each(texts)('the terms of $text', ({text, terms: expected}) => {
    expect(terms.readTerms(text)).toEqual(expected);
  });

  it.each(texts)('the word pieces of $text', ({text, ids, spans}) => {
    const found = tokenizer.split(text);
    expect(found.ids).toEqual(ids);
    expect(found.starts.map((start, row) => [start, found.ends[row]])).toEqual(spans);
  });

  it.each(talk)('the kind of small talk of $text', ({text, kind}) => {
    const replies = {about: 'about', farewell: 'farewell', thanks: 'thanks', greeting: 'greeting'};
    const index = {rules: patterns, replies} as unknown as SearchIndex;
    expect(findReply(text, index) ?? '').toBe(kind);
  });

  it.each(questions)('the parts of $question', ({question, parts}) => {
    expect(splitQuestion(question, patterns as Rules, terms)).toEqual(parts);
  });
});

describe('the words of the form', () => {
  it.each(questions)('in $question', ({question, form_words, form_terms}) => {
    const spans = findFormWords(question, patterns.forms, terms);
    expect(spans).toEqual(form_words);
    expect([...findFormTerms(question, spans, terms)].sort()).toEqual(form_terms);
  });
});

describe('abbreviations', () => {
  const nms: Abbreviation = ['Non-Maximum Suppression', 'nms', ['non', 'maximum', 'suppress']];
  const abbreviations = {by_short: [nms], by_long: [nms]};
  const find = (question: string) => findAbbreviations(question, {abbreviations}, terms);

  it('are found by one form if the other is missing', () => {
    expect(find('What is NMS?').unspelled).toEqual([nms]);
    expect(find('What does non-maximum suppression do?').unshortened).toEqual([nms]);
    expect(find('What is NMS, non-maximum suppression?')).toEqual({unspelled: [], unshortened: []});
    expect(spellOut('What is NMS?', find('What is NMS?'))).toBe(
      'What is NMS? (Non-Maximum Suppression)',
    );
    expect(spellOut('What is it?', find('What is it?'))).toBe('What is it?');
  });

  it('stand for their other form', () => {
    const has = addOtherForms((term) => term === 'nms', find('What is NMS?'));
    expect(['nms', 'suppress', 'lidar'].map(has)).toEqual([true, true, false]);
  });
});

it('splits no question of more characters than the library', () => {
  const long = `What is a node and how does it publish? ${'x'.repeat(1_000)}`;
  expect(splitQuestion(long, patterns as Rules, terms)).toEqual([]);
});

it('leaves out the pieces that the model does not read', () => {
  const {ids} = tokenizer.split('robot '.repeat(400));
  expect(ids).toHaveLength(256);
  expect(ids.at(-1)).toBe(vocab['[SEP]']);
});

it('reads an unknown or very long word as one piece', () => {
  expect(tokenizer.split('x'.repeat(101)).ids[1]).toBe(vocab['[UNK]']);
  expect(new Tokenizer(['[UNK]', '[CLS]', '[SEP]', 'a']).split('ab').ids).toEqual([1, 0, 2]);
});

it('leaves out runs of characters that are no words, and stems nothing short', () => {
  expect(terms.readTerms('a'.repeat(65))).toEqual([]);
  expect(stem('is')).toBe('is');
  expect(['node', 'ロボット', 'café', '3d'].map(isLatin)).toEqual([true, false, true, true]);
});
