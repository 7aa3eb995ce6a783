/** The English stemmer of Snowball (Porter 2), which the index's terms were made with. */

const EXCEPTIONS: Readonly<Record<string, string>> = {
  skis: 'ski', skies: 'sky', dying: 'die', lying: 'lie', tying: 'tie', idly: 'idl',
  gently: 'gentl', ugly: 'ugli', early: 'earli', only: 'onli', singly: 'singl', sky: 'sky',
  news: 'news', howe: 'howe', atlas: 'atlas', cosmos: 'cosmos', bias: 'bias', andes: 'andes',
};
const FINISHED = /^(?:inning|outing|canning|herring|earring|proceed|exceed|succeed)$/;
const VOWEL = /[aeiouy]/;
const DOUBLE = /(?:bb|dd|ff|gg|mm|nn|pp|rr|tt)$/;
const SHORT = /(?:[^aeiouy][aeiouy][^aeiouywxY]|^[aeiouy][^aeiouy])$/;
const REGION = /[aeiouy][^aeiouy]/;

/** Endings of the second step and what replaces them, longest first where they overlap. */
const STEP_2 = order({
  tional: 'tion', enci: 'ence', anci: 'ance', abli: 'able', entli: 'ent', izer: 'ize',
  ization: 'ize', ational: 'ate', ation: 'ate', ator: 'ate', alism: 'al', aliti: 'al', alli: 'al',
  fulness: 'ful', ousli: 'ous', ousness: 'ous', iveness: 'ive', iviti: 'ive', biliti: 'ble',
  bli: 'ble', ogi: 'og', fulli: 'ful', lessli: 'less', li: '',
});
const STEP_3 = order({
  tional: 'tion', ational: 'ate', alize: 'al', icate: 'ic', iciti: 'ic', ical: 'ic', ful: '',
  ness: '', ative: '',
});
const STEP_4 = order({
  al: '', ance: '', ence: '', er: '', ic: '', able: '', ible: '', ant: '', ement: '', ment: '',
  ent: '', ism: '', ate: '', iti: '', ous: '', ive: '', ize: '', ion: '',
});

/** Returns the stem of a lower-case word. */
export function stem(word: string): string {
  const exception = EXCEPTIONS[word];
  if (exception !== undefined) {
    return exception;
  }
  if (word.length < 3) {
    return word;
  }
  let stemmed = word.replace(/^'/, '').replace(/^y/, 'Y').replace(/([aeiouy])y/g, '$1Y');
  const special = /^(?:gener|commun|arsen)/.exec(stemmed)?.[0].length;
  const first = special ?? findRegion(stemmed, 0);
  const second = findRegion(stemmed, first);
  stemmed = stepOne(stemmed);
  if (FINISHED.test(stemmed)) {
    return stemmed;
  }
  stemmed = stepOneB(stemmed, first);
  stemmed = stemmed.replace(/(?<=.[^aeiouy])[yY]$/, 'i');
  stemmed = replaceEnding(stemmed, STEP_2, first, (ending, rest) =>
    ending === 'ogi' ? rest.endsWith('l') : ending !== 'li' || /[cdeghkmnrt]$/.test(rest),
  );
  stemmed = replaceEnding(stemmed, STEP_3, first, (ending, rest) =>
    ending !== 'ative' || rest.length >= second,
  );
  stemmed = replaceEnding(stemmed, STEP_4, second, (ending, rest) =>
    ending !== 'ion' || /[st]$/.test(rest),
  );
  return stepFive(stemmed, first, second).replace(/Y/g, 'y');
}

/** Returns the start of the part after the first consonant that follows a vowel. */
function findRegion(word: string, from: number): number {
  const found = REGION.exec(word.slice(from));
  return found ? from + found.index + 2 : word.length;
}

function stepOne(word: string): string {
  const bare = word.replace(/(?:'s'|'s|')$/, '');
  if (bare.endsWith('sses')) {
    return bare.slice(0, -2);
  }
  if (/ie[ds]$/.test(bare)) {
    return bare.slice(0, bare.length > 4 ? -2 : -1);
  }
  if (/[us]s$/.test(bare) || !bare.endsWith('s')) {
    return bare;
  }
  return VOWEL.test(bare.slice(0, -2)) ? bare.slice(0, -1) : bare;
}

function stepOneB(word: string, first: number): string {
  const long = /eed(?:ly)?$/.exec(word);
  if (long) {
    return long.index >= first ? `${word.slice(0, long.index)}ee` : word;
  }
  const ending = /(?:edly|ingly|ed|ing)$/.exec(word);
  if (!ending || !VOWEL.test(word.slice(0, ending.index))) {
    return word;
  }
  const rest = word.slice(0, ending.index);
  if (/(?:at|bl|iz)$/.test(rest)) {
    return `${rest}e`;
  }
  if (DOUBLE.test(rest)) {
    return rest.slice(0, -1);
  }
  return rest.length <= first && SHORT.test(rest) ? `${rest}e` : rest;
}

function stepFive(word: string, first: number, second: number): string {
  const rest = word.slice(0, -1);
  if (word.endsWith('e')) {
    const isShort = SHORT.test(rest);
    return rest.length >= second || (rest.length >= first && !isShort) ? rest : word;
  }
  return word.endsWith('ll') && rest.length >= second ? rest : word;
}

/** Replaces the longest ending of a word, if it is in the region and may be replaced. */
function replaceEnding(
  word: string,
  endings: readonly (readonly [string, string])[],
  region: number,
  mayReplace: (ending: string, rest: string) => boolean,
): string {
  const found = endings.find(([ending]) => word.endsWith(ending));
  if (!found) {
    return word;
  }
  const [ending, replacement] = found;
  const rest = word.slice(0, -ending.length);
  return rest.length >= region && mayReplace(ending, rest) ? rest + replacement : word;
}

function order(endings: Record<string, string>): [string, string][] {
  return Object.entries(endings).sort(([one], [other]) => other.length - one.length);
}
