import {describe, expect, it} from 'vitest';
import {PROBLEM_WORDS, sayProblem} from '../../src/service/words';

describe('the words of problems', () => {
  it('have the name that the site gave the panel', () => {
    const said = PROBLEM_WORDS.map((words) => sayProblem(words, 'Ada'));
    expect(said.join(' ')).not.toContain('RoboTutor');
    expect(new Set(said).size).toBe(PROBLEM_WORDS.length);
    expect(sayProblem('down', 'Ada')).toBe(
      'Ada is not available right now. The book works as usual.',
    );
  });

  it.each([
    [20, 'Try again in 20 seconds.'],
    [1, 'Try again in 1 second.'],
    [0, 'You can ask again now.'],
  ])('name %i seconds', (seconds, words) => {
    expect(sayProblem('tooMany', 'Ada', seconds)).toContain(words);
  });
});
