import {AxeBuilder} from '@axe-core/playwright';
import {describe, expect, inject, test} from 'vitest';

import {setScript} from './harness/model';
import {openBook, type Reader} from './harness/reader';
import {drag, findControl} from './harness/selecting';

const QUESTION = 'What is the zero moment point?';

interface State {
  name: string;
  /** Brings the panel into the state. */
  reach: (reader: Reader) => Promise<unknown>;
  /** The answers of the scripted model. */
  pieces?: string[];
  pauseMs?: number;
  viewport?: {width: number; height: number};
}

const STATES: State[] = [
  {name: 'closed', reach: async ({panel}) => panel.launcher.waitFor()},
  {name: 'empty', reach: ({panel}) => panel.open()},
  {
    name: 'searching',
    pieces: ['late'],
    pauseMs: 20_000,
    reach: async ({panel}) => {
      await panel.open();
      await panel.send(QUESTION);
      await panel.waitForText('Looking in the book');
    },
  },
  {
    name: 'streaming',
    pieces: Array.from({length: 100}, () => 'More and more words [1]. '),
    pauseMs: 300,
    reach: async ({panel}) => {
      await panel.open();
      await panel.send(QUESTION);
      await panel.waitForStatus('streaming');
    },
  },
  {name: 'answered from the book', reach: (reader) => askAfterOpening(reader, QUESTION)},
  {
    name: 'answered with code',
    reach: (reader) => askAfterOpening(reader, 'How do I launch a ROS 2 node in Python?'),
  },
  {
    name: 'answered by a model',
    pieces: ['It is a point on the ground [1]. Its formula is $p_x$ [1].\n\n- One\n- Two [2].'],
    reach: (reader) => askAfterOpening(reader, QUESTION),
  },
  {name: 'refused', reach: (reader) => askAfterOpening(reader, 'A recipe for tomato soup?')},
  {
    name: 'asked about a selection',
    reach: async ({page, panel}) => {
      await drag(page, page.locator('article p').first());
      await findControl(page).click();
      await panel.ask('How much does a GPU for Isaac Sim cost?');
    },
  },
  {
    name: 'failed',
    reach: async (reader) => {
      reader.expect(/Failed to load resource/);
      await reader.panel.open();
      await reader.context.setOffline(true);
      await reader.panel.ask(QUESTION);
    },
  },
  {
    name: 'asked what was missing',
    reach: async (reader) => {
      await askAfterOpening(reader, QUESTION);
      await reader.panel.button('No').click();
      await reader.panel.waitForText('What was missing?');
    },
  },
  {
    name: 'on a phone',
    viewport: {width: 360, height: 640},
    reach: (reader) => askAfterOpening(reader, QUESTION),
  },
];

async function askAfterOpening({panel}: Reader, question: string): Promise<void> {
  await panel.open();
  await panel.ask(question);
}

describe.each(['light', 'dark'] as const)('axe finds nothing in %s mode', (colorScheme) => {
  test.each(STATES)('$name', async ({reach, pieces, pauseMs, viewport}) => {
    if (pieces) {
      await setScript(inject('model'), {pieces, pauseMs});
    }
    const reader = await openBook({
      book: inject(pieces ? 'writing' : 'quoting').book,
      context: {colorScheme, ...(viewport && {viewport})},
    });
    await reach(reader);
    // Only what belongs to RoboTutor, not the pages of the book.
    const found = await new AxeBuilder({page: reader.page})
      .include('[data-robotutor]')
      .analyze();
    const violations = found.violations.map(({id, nodes}) => ({
      id,
      nodes: nodes.map((node) => node.html.slice(0, 200)),
    }));
    expect(violations).toEqual([]);
  });
});
