// @vitest-environment jsdom
import {act, type ReactNode} from 'react';
import {afterEach, expect, it, vi} from 'vitest';
import {useConversation, type Conversation} from '../../src/conversation/useConversation';
import {render} from '../render';
import {LiveResponse, encodeAnswer} from '../service/streams';

afterEach(() => vi.unstubAllGlobals());

let seen: Conversation;

function Panel({serviceUrl}: {serviceUrl: string}): ReactNode {
  seen = useConversation({serviceUrl});
  return seen.turns.map(({text}) => text).join();
}

it('an answer goes on while no component shows it', async () => {
  const live = new LiveResponse();
  vi.stubGlobal('fetch', async () => live.response);
  const panel = render(<Panel serviceUrl="https://one.test" />);
  act(() => seen.ask({question: 'What is a robot?'}));
  expect(seen.busy).toBe(true);
  panel.remove();
  live.send(encodeAnswer('A robot.'));
  await new Promise((resolve) => setTimeout(resolve, 20));
  const again = render(<Panel serviceUrl="https://one.test" />);
  expect(again.element.textContent).toBe('A robot.');
  expect(seen.busy).toBe(false);
});

it('functions stay the same between renderings', () => {
  const panel = render(<Panel serviceUrl="https://two.test" />);
  const {ask, stop, retry, clear, rate} = seen;
  panel.show(<Panel serviceUrl="https://two.test" />);
  expect(seen).toMatchObject({ask, stop, retry, clear, rate});
});
