// @vitest-environment jsdom
import {act} from 'react';
import {expect, it, vi} from 'vitest';
import Launcher from '../../src/panel/Launcher';
import {click, findButton, render} from '../render';

// A browser that is offline cannot load the panel.
vi.mock('../../src/panel/Widget', () => Promise.reject(new Error('offline')));

it('a tap says that the panel cannot be loaded, although its touch began to load it', async () => {
  const {element} = render(<Launcher />);
  const button = findButton(element, 'Ask RoboTutor');
  // React hears of an entering pointer by this event.
  act(() => void button.dispatchEvent(new MouseEvent('pointerover', {bubbles: true})));
  await click(button);
  await vi.waitFor(async () => {
    await act(async () => {});
    expect(element.querySelector('[role="alert"]')?.textContent).toContain('could not be loaded');
  }, {timeout: 30_000});
});
