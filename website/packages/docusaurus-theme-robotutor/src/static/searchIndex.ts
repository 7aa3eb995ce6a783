/** The index of the static mode, as `rag-pipeline export-search` writes it. */

import type {Figure} from '../service/protocol';

/** The layout of the file that this package reads. */
export const FORMAT = 3;

type Pattern = [source: string, flags: string];

/** The constants of the library's rules, which come with the index. */
export interface Rules {
  depth: number;
  near_share: number;
  statistics_depth: number;
  full_cover: number;
  document_depth: number;
  path: number;
  heading: number;
  length: number;
  post: number;
  weights: {semantic: number; bm25: number; document: number; windows: number};
  dedup_threshold: number;
  uncrowded: number;
  crowding: number;
  part_depth: number;
  first_place: number;
  top_k: number;
  max_terms: number;
  evidence_depth: number;
  stop_words: string[];
  max_parts: number;
  clause_terms: number;
  pair_terms: number;
  max_compound_chars: number;
  sentence: Pattern;
  asks: Pattern;
  clause: Pattern;
  pairs: Pattern[];
  grounding: Record<
    'semantic' | 'support' | 'cover' | 'known' | 'headings' | 'length' | 'log_size' | 'bias' | 'near',
    number
  >;
  weakest: number;
  answered_from: number;
  covered_from: number;
  unanswered: number;
  related_from: number;
  related_sections: number;
  covers: number;
  exact: Pattern;
  forms: Pattern[];
  counted_forms: Pattern[];
  form_share: number;
  asked_facts: [Pattern, Pattern][];
  qualified: Pattern;
  plural: Pattern;
  max_qualified: number;
  small_talk: Pattern;
  smiley: Pattern;
  code_signs: Pattern;
  max_talk_words: number;
}

/** A passage of the book. Spans are offsets in `text`. */
export interface IndexedPassage {
  chunk_id: string;
  doc_path: string;
  title: string;
  section: string;
  level: number;
  anchor: string;
  url: string;
  module: string;
  chapter: string;
  content_type: string;
  lines: [number, number];
  version?: string;
  locale?: string;
  tabs?: string[];
  figures?: Figure[];
  text: string;
  /** The numbers of its page, its section and its text. Equal ones have equal numbers. */
  page: number;
  section_key: number;
  hash: number;
  chunk_index: number;
  words: number;
  /** The heading, if the passage has no other text. */
  bare: string | null;
  is_post?: boolean;
  sentences: [number, number][];
  blocks: [kind: string, start: number, end: number][];
}

interface Arrays {
  dense: Int16Array;
  dense_steps: Float32Array;
  windows: Int8Array;
  window_steps: Float32Array;
  window_ends: Uint32Array;
  idf: Float32Array;
  posting_ends: Uint32Array;
  posting_passages: Uint32Array;
  posting_weights: Uint16Array;
  path_terms: Uint32Array;
  path_ends: Uint32Array;
  heading_terms: Uint32Array;
  heading_ends: Uint32Array;
}

/** An abbreviation: its long form, the term of its short form, and those of its long form. */
export type Abbreviation = [long: string, shortTerm: string, longTerms: string[]];

/** An index in memory. Passages are in the order of their ids in the collection. */
export interface SearchIndex extends Arrays {
  index_id: string;
  model: string;
  rules: Rules;
  /** The reply to each kind of small talk. */
  replies: Record<'about' | 'farewell' | 'thanks' | 'greeting', string>;
  passages: IndexedPassage[];
  /** Each form once, with the most frequent other form. */
  abbreviations: {by_short: Abbreviation[]; by_long: Abbreviation[]};
  page_keys: string[];
  terms: string[];
  word_pieces: string[];
  /** The number of each term. */
  termIds: ReadonlyMap<string, number>;
  /** The length of a vector. */
  dim: number;
}

/** The reason why an index cannot be read: another version of its layout, or damage. */
export class IndexError extends Error {
  readonly isOtherVersion: boolean;

  constructor(isOtherVersion: boolean) {
    super(isOtherVersion ? 'The index has another version.' : 'The index is damaged.');
    this.isOtherVersion = isOtherVersion;
  }
}

const TYPES = {
  int8: Int8Array,
  int16: Int16Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  float32: Float32Array,
} as const;

/** Reads the content of an index file. Throws an `IndexError` if that is not possible. */
export async function readIndex(content: ArrayBuffer): Promise<SearchIndex> {
  let head: SearchIndex & {format: number; arrays: Record<string, [keyof typeof TYPES, number, number]>};
  let start: number;
  let whole: ArrayBuffer;
  try {
    whole = await decompress(content);
    const length = new DataView(whole).getUint32(0, true);
    start = 4 + length;
    head = JSON.parse(new TextDecoder().decode(new Uint8Array(whole, 4, length)));
  } catch {
    throw new IndexError(false);
  }
  if (head.format !== FORMAT) {
    throw new IndexError(true);
  }
  try {
    const arrays = Object.fromEntries(
      Object.entries(head.arrays).map(([name, [type, offset, count]]) => [
        name,
        new TYPES[type](whole, start + offset, count),
      ]),
    ) as unknown as Arrays;
    const termIds = new Map(head.terms.map((term, id) => [term, id]));
    const dim = arrays.dense.length / head.passages.length;
    return {...head, ...arrays, termIds, dim};
  } catch {
    throw new IndexError(false);
  }
}

async function decompress(content: ArrayBuffer): Promise<ArrayBuffer> {
  const [first, second] = new Uint8Array(content, 0, 2);
  if (first !== 0x1f || second !== 0x8b) {
    return content; // the server has decompressed it
  }
  const stream = new Blob([content]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream).arrayBuffer();
}
