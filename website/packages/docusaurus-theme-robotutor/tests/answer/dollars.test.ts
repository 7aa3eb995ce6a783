import {describe, expect, it} from 'vitest';
import {prepareFormulas} from '../../src/answer/dollars';

describe('prepareFormulas', () => {
  it.each([
    'It costs $5 and $7.',
    'From $20,000 to $30,000 a year.',
    'Between $5/$7 per hour, or $5-$7.',
    'US$5 is less than A$8 or 5$ and 6$.',
    'It is $5 per hour or 10$ per day.',
    'Set $HOME/bin:$PATH and ${ROS_DISTRO}.',
    'One $ and two $$ signs.',
    'A budget of $1.5 million and of $3 million$.',
    'An end\n\n$x\n\nand$ more.',
  ])('leaves money and variables alone: %s', (source) => {
    const {formulas, text} = prepareFormulas(source);
    expect(formulas).toBe(0);
    expect(text.replaceAll('\\$', '$')).toBe(source);
    expect(text).not.toMatch(/(?<!\\)\$/);
  });

  it.each([
    'Height $z_c$ and mass $m$.',
    'The $n$th joint, and the $i$-th.',
    '$5x+1$ and $2\\,\\mathrm{m}$ and $0$.',
    '$-1.59\\ \\mathrm{m/s^2}\\le\\ddot x$.',
    '($x$, $y$)',
    'Before\n\n$$\np_x=x\n$$\n\nafter',
    'In a line $$a^2$$.',
    'A list:\n\n- $a$\n  $$\n  b\n  $$\n',
  ])('keeps the formulas of a book: %s', (source) => {
    const {formulas, text} = prepareFormulas(source);
    expect(text).toBe(source);
    expect(formulas).toBeGreaterThan(0);
  });

  it('tells money and formulas of one sentence apart', () => {
    const {text} = prepareFormulas('A motor of $50 has $\\tau = 2$ Nm, one of $80 has $x$.');
    expect(text).toBe('A motor of \\$50 has $\\tau = 2$ Nm, one of \\$80 has $x$.');
  });

  it('leaves code alone', () => {
    const source = 'Run `echo $a$`:\n\n```bash\necho $a$ \\(x\\)\n```\n\nand ``$b$``.';
    expect(prepareFormulas(source)).toEqual({text: source, formulas: 0});
  });

  it('reads the brackets that models write', () => {
    expect(prepareFormulas('So \\(x^2\\) holds.').text).toBe('So $x^2$ holds.');
    expect(prepareFormulas('So\n\n\\[\nx^2\n\\]\n').text).toBe('So\n\n$$\nx^2\n$$\n');
  });

  it('keeps every character but backslashes before dollar signs', () => {
    const source = 'a `b $c` $d \\$e $$ f ` $g';
    expect(prepareFormulas(source).text.replaceAll('\\$', '$')).toBe(
      source.replaceAll('\\$', '$'),
    );
  });

  it('keeps the characters of many signs', () => {
    for (const unit of ['$', '$ ', '$a ', '`', '` ', '`$', '\\(', '\\[', '$$ ', '$a$']) {
      const source = unit.repeat(10_000);
      const {text} = prepareFormulas(source);
      expect(text.replaceAll('\\$', '$').length).toBeGreaterThanOrEqual(source.length);
    }
  });
});
