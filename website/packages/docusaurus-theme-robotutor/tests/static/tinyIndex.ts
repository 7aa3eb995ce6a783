/** A tiny index with vectors of two numbers, packed as `rag-pipeline export-search` packs it. */

import {gzipSync} from 'node:zlib';
import {FORMAT, type IndexedPassage, type Rules} from '../../src/static/searchIndex';

/** Passages about a subject on the first axis and about another on the second. */
const TEXTS = [
  {section: 'Torque', text: '## Torque\n\nTorque turns a wheel. It is force times arm.', at: [1, 0]},
  {section: 'Wheels', text: 'A wheel rolls. Torque from the motor turns it.', at: [0.9, 0.44]},
  {section: 'Cameras', text: 'A camera sees light. Its lens bends it.', at: [0, 1]},
];
const TERMS = ['arm', 'bend', 'camera', 'forc', 'len', 'light', 'motor', 'roll', 'see', 'time', 'torqu', 'turn', 'wheel'];
const POSTINGS = [[0], [2], [2], [0], [2], [2], [1], [1], [2], [0], [0, 1], [0, 1], [0, 1]];

const RULES: Rules = {
  depth: 100, near_share: 0.64, statistics_depth: 100, full_cover: 0.45, document_depth: 3,
  path: 0.15, heading: 0.2, length: 0.05, post: 0.15,
  weights: {semantic: 0.8, bm25: 0.2, document: 0.2, windows: 0.7},
  dedup_threshold: 0.95, uncrowded: 2, crowding: 0.1, part_depth: 20, first_place: 3, top_k: 5,
  max_terms: 48, evidence_depth: 5, stop_words: ['on', 'part', 'what', 'is', 'a', 'the', 'it', 'its', 'from', 'who', 'and', 'how', 'does'],
  max_parts: 3, clause_terms: 1, pair_terms: 1, max_compound_chars: 1_000,
  sentence: ['(?<=[.?!;])\\s+', ''], asks: ['(?:how|what|who)\\b', 'i'],
  clause: [',?\\s+(?:and|or)\\s+(?=(?:how|what|who)\\b)', 'i'], pairs: [],
  grounding: {semantic: 5.8, support: 9.2, cover: 0.9, known: 4, headings: 4.2, length: 2.8, log_size: 0, bias: -15.3, near: 0.45},
  weakest: 10, answered_from: 0.6, covered_from: 0.3, unanswered: 0.55, related_from: 0.33,
  related_sections: 3, covers: 0.6, exact: ['\\d{3,}|\\w+_\\w+', ''], forms: [['\\b(differences?)\\s+between\\b', 'i']], counted_forms: [['\\b(differences?)\\s+between\\b', 'i']], form_share: 0.25, qualified: ['(?<way>from\\s+wheel)|\\son\\s+(?<words>\\w+(?:\\s\\w+)?)$|(?<unit>part)\\s+(?<number>[\\d.]+)', 'i'], max_qualified: 12, plural: ['[^s]s$', ''],
  small_talk: ['(?:(?<thanks>thanks)|(?<greeting>hello))(?: |$)', ''], smiley: [':\\)', ''], code_signs: ['[()]', ''], max_talk_words: 20, asked_facts: [[['\\bwho\\s+invent\\w*', 'i'], ['invented by (?<fact>[A-Z]\\w+(?:\\s[A-Z]\\w+)+)', '']]],
};

/** The image of the first passage. */
export const FIGURE = {kind: 'image', address: '/img/arm.png', text: 'An arm', caption: ''};

function describe({section, text}: (typeof TEXTS)[number], at: number): IndexedPassage {
  const sentences = [...text.matchAll(/[^\n.]+\./g)].map(
    ({index, 0: found}): [number, number] => [index + found.length - found.trimStart().length, index + found.length],
  );
  const heading = text.startsWith('##') ? text.indexOf('\n') : 0;
  return {
    chunk_id: `chunk-${at}`, doc_path: `page-${at}.md`, title: `Page ${at}`, section, level: 2,
    anchor: section.toLowerCase(), url: `/docs/page-${at}#${section.toLowerCase()}`,
    module: at < 2 ? 'module-1' : 'module-2', chapter: '', content_type: 'prose', lines: [1, 3], text,
    ...(at === 0 ? {tabs: ['Motors'], figures: [FIGURE]} : {}),
    page: at, section_key: at, hash: at, chunk_index: 0, words: 9, bare: null, sentences,
    blocks: heading ? [['heading', 0, heading], ['paragraph', heading + 2, text.length]] : [['paragraph', 0, text.length]],
  };
}

/** Returns the content of the index file. */
export function packIndex(format = FORMAT, changes: Record<string, unknown> = {}): ArrayBuffer {
  const scaled = TEXTS.flatMap(({at}) => at.map((value) => Math.round(value * 127)));
  const ends = (lists: readonly (readonly number[])[]): number[] =>
    lists.map((_, row) => lists.slice(0, row + 1).flat().length);
  const headings = TEXTS.map(({section}) =>
    [{Torque: 'torqu', Wheels: 'wheel', Cameras: 'camera'}[section] ?? ''].map((term) => TERMS.indexOf(term)),
  );
  const arrays = {
    dense: new Int16Array(TEXTS.flatMap(({at}) => at.map((value) => Math.round(value * 32767)))),
    dense_steps: new Float32Array(3).fill(1 / 32767),
    windows: new Int8Array(scaled),
    window_steps: new Float32Array(3).fill(1 / 127),
    window_ends: new Uint32Array([1, 2, 3]),
    idf: new Float32Array(TERMS.length).fill(1),
    posting_ends: new Uint32Array(ends(POSTINGS)),
    posting_passages: new Uint32Array(POSTINGS.flat()),
    posting_weights: new Uint16Array(POSTINGS.flat().map(() => 30_000)),
    path_terms: new Uint32Array(headings.flat()),
    path_ends: new Uint32Array(ends(headings)),
    heading_terms: new Uint32Array(headings.flat()),
    heading_ends: new Uint32Array(ends(headings)),
  };
  const table: Record<string, [string, number, number]> = {};
  const blocks: Uint8Array[] = [];
  let offset = 0;
  for (const [name, array] of Object.entries(arrays)) {
    const type = array.constructor.name.replace('Array', '').toLowerCase();
    table[name] = [type, offset, array.length];
    const size = Math.ceil(array.byteLength / 8) * 8;
    const block = new Uint8Array(size);
    block.set(new Uint8Array(array.buffer));
    blocks.push(block);
    offset += size;
  }
  const head = {
    format, index_id: 'tiny', model: 'local/tiny', rules: RULES, replies: {about: 'I help.', farewell: 'Bye.', thanks: 'Glad to.', greeting: 'Hello.'},
    passages: TEXTS.map(describe),
    abbreviations: {by_short: [], by_long: []}, page_keys: ['a', 'b', 'c'], terms: TERMS, word_pieces: PIECES, arrays: table, ...changes,
  };
  let text = JSON.stringify(head);
  text += ' '.repeat((8 - ((4 + Buffer.byteLength(text)) % 8)) % 8);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(Buffer.byteLength(text));
  return new Uint8Array(gzipSync(Buffer.concat([length, Buffer.from(text), ...blocks]))).buffer;
}

/** Word pieces whose vectors lie on the first axis, on the second, or between them. */
export const PIECES = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', 'torque', 'wheel', 'camera', 'lens', 'turns', 'moves', 'invented', 'who'];

/** Returns the vectors of word pieces, as the model does. */
export async function infer(ids: readonly number[]): Promise<Float32Array> {
  return Float32Array.from(
    ids.flatMap((id) => {
      const piece = PIECES[id] ?? '';
      if (['torque', 'wheel', 'turns', 'invented'].includes(piece)) {
        return [1, 0];
      }
      return ['camera', 'lens'].includes(piece) ? [0, 1] : piece === '[UNK]' ? [-1, -1] : [0, 0];
    }),
  );
}
