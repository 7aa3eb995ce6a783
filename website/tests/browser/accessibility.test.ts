import {AxeBuilder} from '@axe-core/playwright';
import {expect, inject, test} from 'vitest';

import {setScript} from './harness/model';
import {openBook, type Reader} from './harness/reader';
import {findModel, findWriting} from './harness/scripted';
import {drag, findControl} from './harness/selecting';
import {startStaticHost} from './harness/static';

const QUESTION = 'What is the zero moment point?';

interface State {
  name: string;
  /** Brings the panel into the state, from the one before it. */
  reach: (reader: Reader) => Promise<unknown>;
}

/** States that one page goes through, which saves loading it for each of them. */
interface Journey {
  name: string;
  states: State[];
  isWriting?: boolean;
  viewport?: {width: number; height: number};
}

const JOURNEYS: Journey[] = [
  {
    name: 'answers from the book',
    states: [
      {name: 'closed', reach: async ({panel}) => panel.launcher.waitFor()},
      {name: 'empty', reach: ({panel}) => panel.open()},
      {name: 'answered from the book', reach: ({panel}) => panel.ask(QUESTION)},
      {
        name: 'asked what was missing',
        reach: async ({panel}) => {
          await panel.button('No').click();
          await panel.waitForText('What was missing?');
        },
      },
      {
        name: 'answered with code',
        reach: async ({panel}) => {
          await panel.button('New conversation').click();
          await panel.ask('How do I launch a ROS 2 node in Python?');
        },
      },
      {
        name: 'answered with a diagram',
        reach: async ({panel}) => {
          await panel.ask('How does the latency chain look, drawn as a sequence?');
          const diagram = panel.turn.getByRole('region', {name: 'Diagram'}).first();
          await diagram.locator('svg').waitFor({state: 'attached'});
        },
      },
      {
        name: 'a new conversation, which can be undone',
        reach: async ({panel}) => {
          await panel.button('New conversation').click();
          await panel.button('Undo').waitFor();
        },
      },
    ],
  },
  {
    name: 'refusals and failures',
    states: [
      {
        name: 'refused',
        reach: async ({panel}) => {
          await panel.open();
          expect(await panel.ask('What is a good recipe for tomato soup?')).toBe('refused');
        },
      },
      {
        name: 'refused on this page',
        reach: async ({panel}) => {
          await panel.chooseScope('This page');
          expect(await panel.ask('How do I install Isaac Sim on a workstation?')).not.toBe('failed');
        },
      },
      {
        name: 'failed',
        reach: async (reader) => {
          reader.expect(/Failed to load resource/);
          await reader.context.setOffline(true);
          expect(await reader.panel.ask(QUESTION)).toBe('failed');
        },
      },
    ],
  },
  {
    name: 'a selection',
    states: [
      {
        name: 'selected',
        reach: async ({page}) => {
          await drag(page, page.locator('article p').first());
          await findControl(page).waitFor();
        },
      },
      {
        name: 'asked about a selection',
        reach: async ({page, panel}) => {
          await findControl(page).click();
          await panel.ask('How much does a GPU for Isaac Sim cost?');
        },
      },
    ],
  },
  {
    name: 'answers of a model',
    isWriting: true,
    states: [
      {
        name: 'answered by a model',
        reach: async ({panel}) => {
          const text = 'It is a point on the ground [1]. Its formula is $p_x$ [1].';
          await setScript(findModel(), {pieces: [`${text}\n\n- One\n- Two [2].`]});
          await panel.open();
          expect(await panel.ask(QUESTION)).toBe('done');
        },
      },
      {
        name: 'searching',
        reach: async ({panel}) => {
          await setScript(findModel(), {pieces: [], held: ['late']});
          await panel.send(QUESTION);
          await panel.waitForText('Writing the answer');
        },
      },
      {
        name: 'stopped, and streaming',
        reach: async ({panel}) => {
          await panel.button('Stop').click();
          const pieces = Array.from({length: 5}, (_, number) => `Robot ${number} says more words. `);
          await setScript(findModel(), {pieces, held: ['The end of the answer.']});
          await panel.send(QUESTION);
          await panel.waitForStatus('streaming');
        },
      },
    ],
  },
  {
    name: 'a phone',
    viewport: {width: 360, height: 640},
    states: [
      {
        name: 'on a phone',
        reach: async ({panel}) => {
          await panel.open();
          await panel.ask(QUESTION);
        },
      },
    ],
  },
];

/** Checks what belongs to RoboTutor in both color modes, and not the pages of the book. */
async function findViolations({page}: Reader, state: string): Promise<unknown[]> {
  const found: unknown[] = [];
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({colorScheme});
    await page.locator(`html[data-theme="${colorScheme}"]`).waitFor({state: 'attached'});
    const {violations} = await new AxeBuilder({page}).include('[data-robotutor]').analyze();
    for (const {id, nodes} of violations) {
      found.push({state, colorScheme, id, nodes: nodes.map(({html}) => html.slice(0, 200))});
    }
  }
  return found;
}

test('axe finds nothing: answers without a service', async () => {
  const host = await startStaticHost();
  try {
    const reader = await openBook({book: host.book, context: {}});
    const {panel} = reader;
    await panel.open();
    const violations: unknown[] = [];
    expect(await panel.ask(QUESTION)).toBe('done');
    violations.push(...(await findViolations(reader, 'answered')));
    expect(await panel.ask('Who won the football world cup in 1954?')).toBe('refused');
    violations.push(...(await findViolations(reader, 'refused')));
    expect(violations).toEqual([]);
  } finally {
    await host.stop();
  }
}, 480_000);

test.each(JOURNEYS)('axe finds nothing: $name', async ({states, isWriting, viewport}) => {
  const reader = await openBook({
    book: (isWriting ? findWriting() : inject('quoting')).book,
    context: viewport ? {viewport} : {},
  });
  const violations: unknown[] = [];
  for (const {name, reach} of states) {
    await reach(reader);
    violations.push(...(await findViolations(reader, name)));
  }
  expect(violations).toEqual([]);
}, 480_000);
